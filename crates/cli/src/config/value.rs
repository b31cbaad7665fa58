//! What a setting may hold, and how it is written.

mod address;
mod bytes;
mod cache_file;
mod engine;
mod http;
mod mode;
mod name;
mod number;
mod place;
mod redis_url;
mod word;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tidegate_rules::document::{DurationFault, format_duration, parse_duration};

use crate::log::{Filter, NotAFilter};
pub(crate) use address::Address;
pub(crate) use bytes::Bytes;
pub(crate) use cache_file::CacheFile;
pub(crate) use engine::Engine;
pub(crate) use mode::Mode;
pub(crate) use name::Name;
pub(crate) use number::{Count, Percentage, Ratio};
pub(crate) use place::Place;
pub(crate) use redis_url::{RedisUrl, without_login};
pub(crate) use word::{Words, word_of};

/// Something that a setting holds as a single value.
pub(crate) trait Value: Sized {
    /// Whether it may be shown, be it right or wrong.
    const DISCRETION: Discretion = Discretion::Open;

    /// Reads it as people write it, in a file, in the environment or in a flag.
    fn parse(text: &str) -> Result<Self, Mismatch>;

    /// Writes it so that [`Value::parse`] reads the same again.
    fn show(&self) -> Shown;

    /// What may be written, as a JSON schema.
    fn schema() -> Json;
}

/// Whether a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discretion {
    /// To everybody.
    Open,
    /// To nobody.
    Secret,
}

/// Why a text is not what a setting takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// What it takes: "a duration".
    pub(crate) expected: &'static str,
    /// What to write.
    pub(crate) hint: String,
}

/// A setting's value for people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A scalar or a list of scalars.
    Plain(Json),
    /// It is set, and this much of it is for everybody.
    Masked(Json),
    /// It is set, and nobody's business.
    Secret,
    /// It is not set.
    Unset,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

// === impl Discretion ===

impl Discretion {
    /// Whether this text may be shown where a setting like this one holds it: one with somebody's
    /// password in it may not.
    pub(crate) fn about(self, text: &str) -> Self {
        if has_login(text) { Self::Secret } else { self }
    }
}

// === impl Mismatch ===

impl Mismatch {
    pub(crate) fn new(expected: &'static str, hint: impl Into<String>) -> Self {
        Self {
            expected,
            hint: hint.into(),
        }
    }
}

// === impl Secret ===

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Value for Secret {
    const DISCRETION: Discretion = Discretion::Secret;

    fn parse(text: &str) -> Result<Self, Mismatch> {
        let is_sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_sendable {
            Ok(Self(text.to_owned()))
        } else {
            Err(Mismatch::new(
                "a secret",
                "use visible ASCII without blanks",
            ))
        }
    }

    fn show(&self) -> Shown {
        Shown::Secret
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

// === impl Value for what the standard library has ===

impl Value for String {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        Ok(text.to_owned())
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self))
    }

    fn schema() -> Json {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if text.is_empty() {
            return Err(Mismatch::new("a path", "name a file or a folder"));
        }
        Ok(Self::from(text))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.display().to_string()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        match text.to_ascii_lowercase().as_str() {
            // The second half is what Go reads, for the reference's variables.
            "true" | "yes" | "on" | "1" | "t" => Ok(true),
            "false" | "no" | "off" | "0" | "f" => Ok(false),
            _ => Err(Mismatch::new("true or false", "write `true` or `false`")),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self))
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }
}

impl Value for Duration {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        // Zero needs no unit.
        if text == "0" {
            return Ok(Self::ZERO);
        }
        parse_duration(text).map_err(|fault| {
            let hint = match fault {
                DurationFault::NoUnit => format!("say of what: `{text}s` or `{text}ms`"),
                DurationFault::Malformed => {
                    "write numbers with `ms`, `s`, `m`, `h` or `d`, such as `90s` or `1m30s`".into()
                }
                DurationFault::Disordered => {
                    "write each unit once, the largest first, such as `1h30m`".into()
                }
                DurationFault::TooLong => "write less than five hundred years".into(),
            };
            Mismatch::new("a duration", hint)
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(format_duration(*self)))
    }

    fn schema() -> Json {
        json!({ "anyOf": [
            { "type": "string", "pattern": "^([0-9]+(ns|us|ms|s|m|h|d|w))+$" },
            { "const": 0 },
        ] })
    }
}

impl Value for Filter {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse()
            .map_err(|fault: NotAFilter| Mismatch::new("a level", fault.to_string()))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_string()))
    }

    fn schema() -> Json {
        // YAML reads `off` as a boolean in its older form.
        json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "const": false }] })
    }
}

/// Whether a text is a URL, if a misspelt one, that says by what name and password to come in.
pub(crate) fn has_login(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(_, rest)| rest.contains('@') || rest.contains("password="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back_the_same() {
        fn check<T: Value + PartialEq + fmt::Debug>(text: &str, shown: &Json) {
            let value = T::parse(text).expect(text);
            assert_eq!(value.show(), Shown::Plain(shown.clone()), "{text}");
            let again = shown
                .as_str()
                .map_or_else(|| shown.to_string(), str::to_owned);
            assert_eq!(T::parse(&again), Ok(value), "{again}");
        }
        check::<bool>("Yes", &json!(true));
        check::<bool>("0", &json!(false));
        check::<Duration>("90s", &json!("1m30s"));
        check::<PathBuf>("/a/b", &json!("/a/b"));
        check::<Bytes>("256MiB", &json!("256 MiB"));
        check::<Ratio>("0.80", &json!(0.8));
        check::<Ratio>("1", &json!(1.0));
        check::<Count<1>>("4096", &json!(4096));
        check::<Percentage>("25%", &json!("25%"));
        check::<Address>("127.0.0.1:8080", &json!("127.0.0.1:8080"));
        check::<Address>(":8080", &json!("0.0.0.0:8080"));
        check::<Address>("unix:/run/tidegate.sock", &json!("unix:/run/tidegate.sock"));
        check::<Address>("off", &json!("off"));
    }

    #[test]
    fn a_mismatch_says_what_to_write() {
        fn check<T: Value + fmt::Debug>(text: &str, hint: &str) {
            let mismatch = T::parse(text).expect_err(text);
            assert_eq!(mismatch.hint, hint, "{text}");
        }
        check::<bool>("maybe", "write `true` or `false`");
        check::<Duration>("60", "say of what: `60s` or `60ms`");
        check::<Ratio>("1.5", "write a number from 0 to 1, such as `0.8`");
        check::<Count<1>>("0", "write at least 1");
        check::<Count<1>>("-1", "write a whole number from 1 to 4294967295");
        check::<Secret>("two words", "use visible ASCII without blanks");
        check::<PathBuf>("", "name a file or a folder");
    }

    #[test]
    fn a_secret_does_not_show() {
        let secret = Secret::parse("hunter2").expect("it is visible ASCII");
        assert_eq!(secret.show(), Shown::Secret);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
