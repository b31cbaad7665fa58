//! Settings that take one of a few words.

use serde_json::{Value as Json, json};
use tidegate_rules::document::{did_you_mean, one_of};

use super::{Mismatch, Shown, Value};

/// One of a few words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// What the setting takes: "a level".
    const EXPECTED: &'static str;

    /// The words with their meanings; the first word for a meaning is the one that is shown.
    const WORDS: &'static [(&'static str, Self)];
}

/// The word for a meaning.
pub(crate) fn word_of<T: Words>(meaning: T) -> &'static str {
    let found = T::WORDS.iter().find(|(_, other)| *other == meaning);
    found.map_or("", |(word, _)| word)
}

impl<T: Words> Value for T {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let meant = T::WORDS
            .iter()
            .find(|(word, _)| text.eq_ignore_ascii_case(word));
        meant.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = || T::WORDS.iter().map(|(word, _)| *word);
            let hint = did_you_mean(text, known()).unwrap_or_else(|| one_of(known()));
            Mismatch::new(T::EXPECTED, hint)
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(word_of(*self)))
    }

    fn schema() -> Json {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json!({ "enum": words })
    }
}
