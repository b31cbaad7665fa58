//! Descriptors made of requests.

mod source;
mod value;

use std::ops::Range;

use smallvec::SmallVec;
use tidegate_limiter::{Descriptor, Entry};

pub use source::{Source, SourceFault};
pub(crate) use source::{cookie_name, header_name};
pub use value::Values;

use crate::grouping::Grouping;
use crate::{AmbiguousHeader, Request};
use value::ValueReader;

/// What a descriptor is made of, entry by entry. A request that lacks one of the values has no such
/// descriptor, as with Envoy's actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe(pub Vec<Ingredient>);

/// One entry of a descriptor to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingredient {
    /// Its key.
    pub key: String,
    /// Where its value comes from.
    pub from: Source,
}

/// All descriptors that a request is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipes {
    list: Vec<Recipe>,
    /// Each source once, however often it is used.
    sources: Vec<Source>,
    /// For each entry of each recipe the place of its source.
    places: Vec<usize>,
    /// A bit for each recipe that needs a token, the first recipe lowest; there are at most 32.
    needing_token: u32,
}

/// A part of the recipes. A token that was not seen before is verified after the limits that need none have been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribedPart {
    /// All of them.
    All,
    /// Those whose values never come from a token.
    WithoutToken,
    /// Those with a value that may come from a token.
    OnlyToken,
}

/// Why recipes are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeFault {
    /// There is none.
    #[error("there is no descriptor; write at least one")]
    Empty,
    /// There are too many.
    #[error("{given} descriptors, at most {MAX_RECIPES} are taken")]
    TooMany {
        /// How many there are.
        given: usize,
    },
    /// One has no entries.
    #[error("descriptor {descriptor} has no entries")]
    NoEntries {
        /// Which, counted from 1.
        descriptor: usize,
    },
    /// One has too many.
    #[error("descriptor {descriptor} has {given} entries, at most {MAX_INGREDIENTS} are taken")]
    TooManyEntries {
        /// Which, counted from 1.
        descriptor: usize,
        /// How many it has.
        given: usize,
    },
    /// An entry has no key.
    #[error("descriptor {descriptor} has an entry without a key")]
    NoKey {
        /// Which, counted from 1.
        descriptor: usize,
    },
}

/// The descriptors of one request.
#[derive(Debug, Default)]
pub struct Described<'a> {
    entries: SmallVec<[Entry<'a>; INLINE_ENTRIES]>,
    ranges: SmallVec<[Range<usize>; INLINE_DESCRIPTORS]>,
}

/// Descriptors for the limiter.
pub type Descriptors<'a> = SmallVec<[Descriptor<'a>; INLINE_DESCRIPTORS]>;

/// Entries that fit without an allocation. More would cost every request: the list is moved as a whole.
const INLINE_ENTRIES: usize = 4;

/// Descriptors that fit without an allocation.
const INLINE_DESCRIPTORS: usize = 3;

/// As many descriptors as `/json` takes.
const MAX_RECIPES: usize = 32;

/// As many entries as `/json` takes.
const MAX_INGREDIENTS: usize = 32;

// === impl Recipe ===

impl Recipe {
    /// A recipe of keys and sources, in order.
    pub fn new<const N: usize>(entries: [(&str, Source); N]) -> Self {
        let ingredient = |(key, from): (&str, Source)| Ingredient {
            key: key.to_owned(),
            from,
        };
        Self(entries.into_iter().map(ingredient).collect())
    }

    /// The preset for limits that rise with the network: `remote_address` for an IPv4 address or a /64,
    /// `remote_address_56` and `remote_address_48` for the IPv6 networks around it.
    pub fn address_hierarchy() -> [Self; 3] {
        [
            ("remote_address", Grouping::DEFAULT),
            ("remote_address_56", Grouping::IPV6_56),
            ("remote_address_48", Grouping::IPV6_48),
        ]
        .map(|(key, grouping)| Self::new([(key, Source::ClientAddress(grouping))]))
    }

    fn check(&self, descriptor: usize) -> Result<(), RecipeFault> {
        let Self(ingredients) = self;
        if ingredients.is_empty() {
            return Err(RecipeFault::NoEntries { descriptor });
        }
        if ingredients.len() > MAX_INGREDIENTS {
            return Err(RecipeFault::TooManyEntries {
                descriptor,
                given: ingredients.len(),
            });
        }
        if ingredients.iter().any(|entry| entry.key.is_empty()) {
            return Err(RecipeFault::NoKey { descriptor });
        }
        Ok(())
    }
}

// === impl Recipes ===

impl Recipes {
    /// Checks recipes and makes them ready.
    pub fn new(recipes: Vec<Recipe>) -> Result<Self, RecipeFault> {
        if recipes.is_empty() {
            return Err(RecipeFault::Empty);
        }
        if recipes.len() > MAX_RECIPES {
            return Err(RecipeFault::TooMany {
                given: recipes.len(),
            });
        }
        for (index, recipe) in recipes.iter().enumerate() {
            recipe.check(index + 1)?;
        }
        Ok(Self::index(recipes))
    }

    /// No recipe, for requests that are not limited.
    pub const fn none() -> Self {
        Self {
            list: Vec::new(),
            sources: Vec::new(),
            places: Vec::new(),
            needing_token: 0,
        }
    }

    /// Returns true if there is no recipe.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The recipes that it was made of.
    pub fn list(&self) -> &[Recipe] {
        &self.list
    }

    /// The sources of all recipes, each once.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns true if some value may come from a token, so that the [claims](crate::Identities::claims) are of use.
    pub const fn needs_token(&self) -> bool {
        self.needing_token != 0
    }

    /// Reads the value of each source off `request`, once.
    ///
    /// # Errors
    ///
    /// If a header behind a value has more than one meaning. Such a request is to be denied.
    pub fn values<'a>(&'a self, request: &Request<'a>) -> Result<Values<'a>, AmbiguousHeader> {
        let reader = ValueReader::new(request);
        // Filled in place: collecting would move the whole list once more.
        let mut values = Values::default();
        for source in &self.sources {
            values.list.push(reader.read(source)?);
        }
        Ok(values)
    }

    /// The descriptors of the request with these [`values`](Self::values), without those that lack one.
    pub fn describe<'a>(&'a self, values: &'a Values<'_>, part: DescribedPart) -> Described<'a> {
        let mut described = Described::default();
        // Made room at once, many entries take one allocation and few take none.
        if self.places.len() > INLINE_ENTRIES {
            described.entries.reserve(self.places.len());
        }
        if self.list.len() > INLINE_DESCRIPTORS {
            described.ranges.reserve(self.list.len());
        }
        let mut places = self.places.as_slice();
        let mut wanted = self.recipes_in(part);
        for Recipe(ingredients) in &self.list {
            let (own_places, later) = places.split_at(ingredients.len());
            places = later;
            if wanted & 1 == 1 {
                described.add(ingredients, own_places, values);
            }
            wanted >>= 1;
        }
        described
    }

    /// A bit for each recipe of the part.
    const fn recipes_in(&self, part: DescribedPart) -> u32 {
        match part {
            DescribedPart::All => u32::MAX,
            DescribedPart::WithoutToken => !self.needing_token,
            DescribedPart::OnlyToken => self.needing_token,
        }
    }

    fn index(recipes: Vec<Recipe>) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        let mut places = Vec::new();
        let mut needing_token = 0;
        for (index, Recipe(ingredients)) in recipes.iter().enumerate() {
            let needs_token = ingredients.iter().any(|entry| entry.from.needs_token());
            needing_token |= u32::from(needs_token) << index;
        }
        for ingredient in recipes.iter().flat_map(|Recipe(ingredients)| ingredients) {
            let known = sources.iter().position(|source| *source == ingredient.from);
            places.push(known.unwrap_or(sources.len()));
            if known.is_none() {
                sources.push(ingredient.from.clone());
            }
        }
        Self {
            list: recipes,
            sources,
            places,
            needing_token,
        }
    }
}

impl Default for Recipes {
    /// Who asks, what for, and both: useful with rules for any of them.
    fn default() -> Self {
        let client = || ("remote_address", Source::ClientAddress(Grouping::DEFAULT));
        let path = || ("path", Source::Path);
        let method = || ("method", Source::Method);
        Self::index(vec![
            Recipe::new([client()]),
            Recipe::new([path()]),
            Recipe::new([path(), method()]),
            Recipe::new([path(), client()]),
            Recipe::new([path(), method(), client()]),
        ])
    }
}

// === impl Described ===

impl<'a> Described<'a> {
    /// The descriptors for the limiter; none if every one lacked a value.
    pub fn descriptors(&self) -> Descriptors<'_> {
        let mut descriptors = Descriptors::new();
        descriptors.reserve(self.ranges.len());
        for range in &self.ranges {
            descriptors.push(Descriptor::new(&self.entries[range.clone()]));
        }
        descriptors
    }

    /// Returns true if there are no descriptors.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the descriptors of one recipe, unless it lacks a value: one, or one for each value of a header whose values all
    /// count. If there are several such headers, the longest list counts the descriptors, and every value is in one of them.
    fn add(&mut self, ingredients: &'a [Ingredient], places: &[usize], values: &'a Values<'_>) {
        let first = self.entries.len();
        let mut n_descriptors = 1;
        for (ingredient, place) in ingredients.iter().zip(places) {
            let Some(value) = values.list.get(*place).and_then(Option::as_ref) else {
                self.entries.truncate(first);
                return;
            };
            n_descriptors = n_descriptors.max(value.n_values());
            self.entries.push(Entry {
                key: &ingredient.key,
                value: value.nth(0),
            });
        }
        self.ranges.push(first..self.entries.len());
        for index in 1..n_descriptors {
            self.add_nth(index, ingredients, places, values);
        }
    }

    /// Adds a further descriptor of a recipe that lacks no value.
    #[cold]
    fn add_nth(
        &mut self,
        index: usize,
        ingredients: &'a [Ingredient],
        places: &[usize],
        values: &'a Values<'_>,
    ) {
        let first = self.entries.len();
        for (ingredient, place) in ingredients.iter().zip(places) {
            let value = values.list.get(*place).and_then(Option::as_ref);
            self.entries.extend(value.map(|value| Entry {
                key: &ingredient.key,
                value: value.nth(index),
            }));
        }
        self.ranges.push(first..self.entries.len());
    }
}

#[cfg(test)]
mod tests;
