//! What the history says about a version.

use serde::{Deserialize, Serialize};

/// What the history says about a version. Fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    /// Who pushed it.
    pub(crate) author: String,
    /// Why.
    pub(crate) message: String,
    /// How many files it has.
    pub(crate) files: usize,
    /// The version whose files these are, if it brought an old one back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restores: Option<u64>,
}

/// The most characters of a message and of an author's name; the rest is cut off.
const MAX_MESSAGE: usize = 500;
const MAX_AUTHOR: usize = 100;

// === impl About ===

impl About {
    /// What is said of a version with so many files.
    pub(crate) fn new(author: &str, message: &str, files: usize) -> Self {
        Self {
            author: one_line(author, MAX_AUTHOR),
            message: one_line(message, MAX_MESSAGE),
            files,
            restores: None,
        }
    }

    /// As it is stored.
    pub(crate) fn line(&self) -> String {
        // A map of strings and numbers always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what is stored. Of a line that is none, as somebody may have written by hand, the text is
    /// the message.
    pub(crate) fn read(line: &str) -> Self {
        let read: Self = serde_json::from_str(line).unwrap_or_else(|_| Self {
            message: line.to_owned(),
            ..Self::default()
        });
        // Whoever wrote it: it goes to a terminal.
        Self {
            author: one_line(&read.author, MAX_AUTHOR),
            message: one_line(&read.message, MAX_MESSAGE),
            ..read
        }
    }
}

/// A text without line breaks and other characters that do something to a terminal.
fn one_line(text: &str, most: usize) -> String {
    let clean = text.chars().map(|char| match char {
        char if char.is_control() => ' ',
        char => char,
    });
    clean.take(most).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reads_back_the_same() {
        let about = About {
            restores: Some(3),
            ..About::new("ann", "said \"no\"\nand meant it", 2)
        };
        assert_eq!(about.message, "said \"no\" and meant it");
        assert_eq!(About::read(&about.line()), about);
        assert!(!about.line().contains('\n'));
    }

    #[test]
    fn what_somebody_wrote_by_hand_is_a_message_that_does_no_harm() {
        let about = About::read("oops\u{1b}[2J");
        assert_eq!(about.message, "oops [2J");
        assert_eq!(
            About::read(r#"{"message":"a\nb","later":1}"#).message,
            "a b"
        );
        assert_eq!(About::read(&"x".repeat(9_999)).message.len(), MAX_MESSAGE);
    }
}
