//! How much is logged, as it is written: `info`, or `info,audit=off`.

use std::fmt;
use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};

/// How much is logged: a level for everything, and others for some parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    everything: LevelFilter,
    parts: Vec<(String, LevelFilter)>,
}

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write off, error, warn, info, debug or trace, or one of them for a part, as in `info,tidegate_server=debug`"
)]
pub(crate) struct NotAFilter;

/// The levels; the last three are what envoyproxy/ratelimit takes besides.
const LEVELS: [(&str, LevelFilter); 9] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
    ("warning", LevelFilter::WARN),
    ("fatal", LevelFilter::ERROR),
    ("panic", LevelFilter::ERROR),
];

/// The most parts that a filter may name.
const MAX_PARTS: usize = 32;

// === impl Filter ===

impl Filter {
    /// What the layer of the log understands.
    pub(super) fn targets(&self) -> Targets {
        Targets::new()
            .with_default(self.everything)
            .with_targets(self.parts.iter().cloned())
    }
}

impl Default for Filter {
    /// Everything from `info` on.
    fn default() -> Self {
        Self {
            everything: LevelFilter::INFO,
            parts: Vec::new(),
        }
    }
}

impl FromStr for Filter {
    type Err = NotAFilter;

    fn from_str(text: &str) -> Result<Self, NotAFilter> {
        let mut filter = Self::default();
        for piece in text.split(',').map(str::trim) {
            match piece.split_once('=') {
                None => filter.everything = level(piece)?,
                Some((part, piece)) if is_part(part) => {
                    filter.parts.push((part.to_owned(), level(piece)?));
                }
                Some(_) => return Err(NotAFilter),
            }
        }
        if filter.parts.len() > MAX_PARTS {
            return Err(NotAFilter);
        }
        Ok(filter)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.everything)?;
        for (part, level) in &self.parts {
            write!(formatter, ",{part}={level}")?;
        }
        Ok(())
    }
}

fn level(text: &str) -> Result<LevelFilter, NotAFilter> {
    let mut levels = LEVELS.iter();
    let found = levels.find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, level)| *level).ok_or(NotAFilter)
}

/// Whether it can be the name of a part: a path of modules.
fn is_part(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let check = |text: &str, expected: &str| {
            let filter: Filter = text.parse().expect(text);
            assert_eq!(filter.to_string(), expected, "{text}");
        };
        check("info", "info");
        check("WARNING", "warn");
        check("panic", "error");
        check("off", "off");
        check("info, audit=off", "info,audit=off");
        check(
            "tidegate_server::grpc=trace",
            "info,tidegate_server::grpc=trace",
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "loud",
            "info,",
            "audit=",
            "=info",
            "a b=info",
            "audit=loud",
        ] {
            assert_eq!(text.parse::<Filter>(), Err(NotAFilter), "{text:?}");
        }
        let many = vec!["a=info"; MAX_PARTS + 1].join(",");
        assert_eq!(many.parse::<Filter>(), Err(NotAFilter));
    }
}
