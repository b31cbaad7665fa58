//! Recipes that are ready to make descriptors.

use tidegate_limiter::Entry;

use super::{Ingredient, Recipe, Source, Values};

/// A recipe whose values have places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreparedRecipe {
    pub(super) entries: Vec<PreparedEntry>,
    /// True if a value may come from a token.
    pub(super) needs_token: bool,
}

/// One entry of a [`PreparedRecipe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreparedEntry {
    key: Box<str>,
    /// The place of its source among those of all recipes.
    place: usize,
    /// The first entry of the recipe that has the same source: this one, unless a source is there twice.
    first: usize,
}

// === impl PreparedRecipe ===

impl PreparedRecipe {
    /// Gives each source of `recipe` a place in `sources`.
    pub(super) fn new(Recipe(ingredients): &Recipe, sources: &mut Vec<Source>) -> Self {
        let mut entry = |(at, ingredient): (usize, &Ingredient)| {
            let known = sources.iter().position(|source| *source == ingredient.from);
            let place = known.unwrap_or_else(|| {
                sources.push(ingredient.from.clone());
                sources.len() - 1
            });
            let mut earlier = ingredients[..at].iter();
            let first = earlier.position(|other| other.from == ingredient.from);
            PreparedEntry {
                key: ingredient.key.as_str().into(),
                place,
                first: first.unwrap_or(at),
            }
        };
        Self {
            entries: ingredients.iter().enumerate().map(&mut entry).collect(),
            needs_token: ingredients.iter().any(|entry| entry.from.needs_token()),
        }
    }

    /// The number of descriptors made of these values: the combinations of the values of all its sources; none if one has no value.
    pub(super) fn n_descriptors(&self, values: &Values<'_>) -> usize {
        let own = self.entries.iter().enumerate();
        let own = own.filter(|(at, entry)| entry.first == *at);
        let counts = own.map(|(_, entry)| values.count(entry.place));
        counts.fold(1, usize::saturating_mul)
    }

    /// Writes the entries of the only descriptor of a recipe without lists; `None` if the request lacks one of their values.
    pub(super) fn fill<'a>(
        &'a self,
        entries: &mut [Entry<'a>],
        values: &'a Values<'_>,
    ) -> Option<()> {
        for (entry, prepared) in entries.iter_mut().zip(&self.entries) {
            entry.key = &prepared.key;
            entry.value = values.get(prepared.place)?.nth(0);
        }
        Some(())
    }

    /// The same for the descriptor with that `index`, of a recipe that may have lists.
    pub(super) fn fill_nth<'a>(
        &'a self,
        entries: &mut [Entry<'a>],
        values: &'a Values<'_>,
        index: usize,
    ) -> Option<()> {
        let mut left = index;
        for (at, prepared) in self.entries.iter().enumerate() {
            let value = values.get(prepared.place)?;
            entries[at].key = &prepared.key;
            entries[at].value = if prepared.first == at {
                let n_values = value.n_values();
                let text = value.nth(left);
                left /= n_values;
                text
            } else {
                entries[prepared.first].value
            };
        }
        Some(())
    }
}
