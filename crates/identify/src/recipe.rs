//! Descriptors made of requests.

mod prepared;
mod source;
mod value;

use std::mem::take;

use smallvec::SmallVec;
use tidegate_limiter::{Descriptor, Entry};

pub use source::{Source, SourceFault};
pub(crate) use source::{cookie_name, header_name};
pub use value::Values;

use crate::grouping::Grouping;
use crate::value_list::MAX_VALUES;
use crate::{AmbiguousValue, Request};
use prepared::PreparedRecipe;
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
    /// The same recipes, ready to make descriptors.
    prepared: Vec<PreparedRecipe>,
    /// Each source once, however often it is used.
    sources: Vec<Source>,
    /// The entries of all recipes.
    n_entries: usize,
    /// True if a recipe needs a token.
    needs_token: bool,
    /// True if a source may have several values that all count.
    has_lists: bool,
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

/// Room for the entries of the descriptors of one request. Few of them take no allocation.
#[derive(Debug)]
pub struct Entries<'a> {
    few: [Entry<'a>; INLINE_ENTRIES],
    many: Vec<Entry<'a>>,
}

/// Descriptors for the limiter.
pub type Descriptors<'a> = SmallVec<[Descriptor<'a>; INLINE_DESCRIPTORS]>;

/// Entries that fit without an allocation.
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
        Ok(Self::prepare(recipes))
    }

    /// No recipe, for requests that are not limited.
    pub const fn none() -> Self {
        Self {
            list: Vec::new(),
            prepared: Vec::new(),
            sources: Vec::new(),
            n_entries: 0,
            needs_token: false,
            has_lists: false,
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
        self.needs_token
    }

    /// Adds the value of each source to `values`, which are empty. Each is read off `request` once.
    ///
    /// # Errors
    ///
    /// If a header, cookie or query parameter behind a value has more than one meaning, or too many values. Such a request is to be
    /// denied.
    pub fn read<'a>(
        &'a self,
        request: &Request<'a>,
        values: &mut Values<'a>,
    ) -> Result<(), AmbiguousValue> {
        let reader = ValueReader::new(request);
        for source in &self.sources {
            values.list.push(reader.read(source)?);
        }
        if self.has_lists && self.n_most(values) > MAX_VALUES {
            return Err(AmbiguousValue::TooManyCombinations);
        }
        Ok(())
    }

    /// Adds the descriptors of the request with these [`values`](Self::read) to `descriptors`, without those that lack one. Their
    /// entries are written to `entries`.
    ///
    /// A recipe makes one descriptor, or one for each value of a source whose values all count. If there are several such sources, it
    /// makes one for each combination of their values.
    pub fn describe<'e, 'a>(
        &'a self,
        values: &'a Values<'_>,
        part: DescribedPart,
        entries: &'e mut Entries<'a>,
        descriptors: &mut Descriptors<'e>,
    ) {
        let n_most = if self.has_lists {
            self.n_most(values)
        } else {
            1
        };
        // Made room at once, many take one allocation and few take none.
        descriptors.reserve(self.prepared.len() * n_most);
        let mut room = entries.room(self.n_entries * n_most);
        for recipe in &self.prepared {
            if !part.includes(recipe) {
                continue;
            }
            let n_descriptors = if self.has_lists {
                recipe.n_descriptors(values)
            } else {
                1
            };
            for index in 0..n_descriptors {
                let own;
                (own, room) = take(&mut room).split_at_mut(recipe.entries.len());
                let filled = if self.has_lists {
                    recipe.fill_nth(own, values, index)
                } else {
                    recipe.fill(own, values)
                };
                if filled.is_some() {
                    descriptors.push(Descriptor::new(own));
                }
            }
        }
    }

    /// The most descriptors that a recipe makes of these values.
    fn n_most(&self, values: &Values<'_>) -> usize {
        let counts = self.prepared.iter().map(|it| it.n_descriptors(values));
        counts.max().unwrap_or_default()
    }

    /// Gives each source a place.
    fn prepare(list: Vec<Recipe>) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        let mut prepared = Vec::new();
        for recipe in &list {
            prepared.push(PreparedRecipe::new(recipe, &mut sources));
        }
        let is_list = |source: &Source| matches!(source, Source::List(..));
        Self {
            list,
            has_lists: sources.iter().any(is_list),
            needs_token: prepared.iter().any(|recipe| recipe.needs_token),
            n_entries: prepared.iter().map(|recipe| recipe.entries.len()).sum(),
            prepared,
            sources,
        }
    }
}

impl Default for Recipes {
    /// Who asks, what for, and both: useful with rules for any of them.
    fn default() -> Self {
        let client = || ("remote_address", Source::ClientAddress(Grouping::DEFAULT));
        let path = || ("path", Source::Path);
        let method = || ("method", Source::Method);
        Self::prepare(vec![
            Recipe::new([client()]),
            Recipe::new([path()]),
            Recipe::new([path(), method()]),
            Recipe::new([path(), client()]),
            Recipe::new([path(), method(), client()]),
        ])
    }
}

// === impl DescribedPart ===

impl DescribedPart {
    const fn includes(self, recipe: &PreparedRecipe) -> bool {
        match self {
            Self::All => true,
            Self::WithoutToken => !recipe.needs_token,
            Self::OnlyToken => recipe.needs_token,
        }
    }
}

// === impl Entries ===

impl<'a> Entries<'a> {
    const EMPTY: Entry<'a> = Entry { key: "", value: "" };

    /// Room for this number of entries.
    fn room(&mut self, n_entries: usize) -> &mut [Entry<'a>] {
        if n_entries <= INLINE_ENTRIES {
            return &mut self.few[..n_entries];
        }
        self.many = vec![Self::EMPTY; n_entries];
        &mut self.many
    }
}

impl Default for Entries<'_> {
    fn default() -> Self {
        Self {
            few: [Self::EMPTY; INLINE_ENTRIES],
            many: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
