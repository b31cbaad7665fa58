//! Descriptors made of requests.

mod source;

use std::borrow::Cow;
use std::ops::Range;

use tidegate_limiter::{Descriptor, Entry};

pub use source::{Source, SourceFault};

use crate::Request;
use crate::grouping::Grouping;

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
    entries: Vec<Entry<'a>>,
    ranges: Vec<Range<usize>>,
}

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

    /// The recipes that it was made of.
    pub fn list(&self) -> &[Recipe] {
        &self.list
    }

    /// Reads the value of each source off `request`, once. What it has not, or has empty, is `None`.
    pub fn values<'a>(&'a self, request: &Request<'a>) -> Vec<Option<Cow<'a, str>>> {
        let value = |source: &'a Source| source.of(request).filter(|value| !value.is_empty());
        self.sources.iter().map(value).collect()
    }

    /// The descriptors of the request with these [`values`](Self::values), without those that lack one.
    pub fn describe<'a>(&'a self, values: &'a [Option<Cow<'_, str>>]) -> Described<'a> {
        let mut described = Described::default();
        let mut places = self.places.iter();
        for Recipe(ingredients) in &self.list {
            let first = described.entries.len();
            for (ingredient, place) in ingredients.iter().zip(&mut places) {
                let value = values.get(*place).and_then(Option::as_deref);
                described.entries.extend(value.map(|value| Entry {
                    key: &ingredient.key,
                    value,
                }));
            }
            let range = first..described.entries.len();
            if range.len() == ingredients.len() {
                described.ranges.push(range);
            } else {
                described.entries.truncate(first);
            }
        }
        described
    }

    fn index(recipes: Vec<Recipe>) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        let mut places = Vec::new();
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

impl Described<'_> {
    /// The descriptors for the limiter; none if every one lacked a value.
    pub fn descriptors(&self) -> Vec<Descriptor<'_>> {
        let descriptor = |range: &Range<usize>| Descriptor::new(&self.entries[range.clone()]);
        self.ranges.iter().map(descriptor).collect()
    }
}

#[cfg(test)]
mod tests;
