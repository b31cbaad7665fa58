//! The language of the product: its doc sentences, its type names and its comments, counted.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Role, Source};

/// Words that no doc summary begins with: they turn a noun phrase or a verb into a riddle.
pub const QUESTION_WORDS: &[&str] = &[
    "how", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why",
];

/// Parts of paths below `src/` that only tests use.
const TEST_SUPPORT: &[&str] = &["conformance", "loom_tests", "model", "oracle", "test_util"];

/// The language of the product in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Lines that are neither blank nor a comment.
    pub code_lines: usize,
    /// Lines of comments inside functions.
    pub comments_in_functions: usize,
    /// Doc comments, of items and of files.
    pub doc_summaries: usize,
    /// Doc comments whose first word is one of [`QUESTION_WORDS`].
    pub questions: usize,
    /// Places where each type name is declared: structs, enums, unions, traits and aliases.
    pub type_names: BTreeMap<String, Vec<String>>,
}

// === impl Figures ===

impl Figures {
    /// Adds one file. Tests, and code that only tests use, do not count.
    pub fn add(&mut self, source: &Source) {
        if source.role != Role::Product || is_test_support(&source.path) {
            return;
        }
        for name in source
            .types
            .iter()
            .filter(|name| !source.is_test(name.line))
        {
            let places = self.type_names.entry(name.name.clone()).or_default();
            places.push(format!("{}:{}", source.path, name.line));
        }
        let mut previous = Line::Code;
        for (line, text) in source
            .text
            .lines()
            .enumerate()
            .map(|(at, text)| (at + 1, text))
        {
            let this = Line::of(text);
            if !source.is_test(line) {
                self.add_line(this, previous, text, source.is_in_function(line));
            }
            previous = this;
        }
    }

    /// The number of declared types.
    pub fn types(&self) -> usize {
        self.type_names.values().map(Vec::len).sum()
    }

    /// The number of types whose name is one word.
    pub fn one_word_types(&self) -> usize {
        let short = self.type_names.iter().filter(|(name, _)| words(name) == 1);
        short.map(|(_, places)| places.len()).sum()
    }

    /// The names that are declared more than once, with their places.
    pub fn repeated_names(&self) -> impl Iterator<Item = (&str, &[String])> {
        let all = self.type_names.iter();
        all.filter(|(_, places)| places.len() > 1)
            .map(|(name, places)| (name.as_str(), places.as_slice()))
    }

    fn add_line(&mut self, this: Line, previous: Line, text: &str, is_in_function: bool) {
        match this {
            Line::Code => self.code_lines += 1,
            Line::Doc if previous != Line::Doc => {
                self.doc_summaries += 1;
                self.questions += usize::from(begins_with_question(text));
            }
            Line::Comment if is_in_function => self.comments_in_functions += 1,
            Line::Doc | Line::Comment | Line::Blank => {}
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: usize, of: usize| 100 * part / of.max(1);
        let (types, short) = (self.types(), self.one_word_types());
        let thousandths = 1000 * self.comments_in_functions / self.code_lines.max(1);
        writeln!(out, "lines of code              {}", self.code_lines)?;
        writeln!(
            out,
            "comments in functions      {}, 0.{thousandths:03} for a line of code",
            self.comments_in_functions
        )?;
        writeln!(
            out,
            "doc summaries              {}, {} % begin with what, how, whether, ...",
            self.doc_summaries,
            percent(self.questions, self.doc_summaries)
        )?;
        writeln!(
            out,
            "types                      {types}, {} % with a name of one word",
            percent(short, types)
        )?;
        write!(
            out,
            "names declared repeatedly  {}",
            self.repeated_names().count()
        )
    }
}

/// A line of a source file by its look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Blank,
    Doc,
    Comment,
    Code,
}

// === impl Line ===

impl Line {
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.is_empty() {
            Self::Blank
        } else if text.starts_with("///") || text.starts_with("//!") {
            Self::Doc
        } else if text.starts_with("//") {
            Self::Comment
        } else {
            Self::Code
        }
    }
}

/// Returns true if the first word of a doc comment is one of [`QUESTION_WORDS`].
pub fn begins_with_question(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']);
    let first = text
        .split(|next: char| !next.is_alphanumeric())
        .find(|word| !word.is_empty());
    first.is_some_and(|word| QUESTION_WORDS.contains(&word.to_lowercase().as_str()))
}

/// Returns true for files below `src/` that only tests use.
pub fn is_test_support(path: &str) -> bool {
    path.split(['/', '.'])
        .any(|part| TEST_SUPPORT.contains(&part))
}

/// Counts the words of a type name by its capitals; an acronym is one word.
fn words(name: &str) -> usize {
    let mut previous_is_capital = false;
    let mut count = 0;
    for letter in name.chars() {
        let is_capital = letter.is_uppercase();
        count += usize::from(is_capital && !previous_is_capital);
        previous_is_capital = is_capital;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(text: &str) -> Figures {
        let mut figures = Figures::default();
        figures.add(&Source::parse("crates/a/src/lib.rs", text));
        figures
    }

    #[test]
    fn summaries_count_once_and_by_their_first_word() {
        let figures = figures_of(
            "//! What it is.\n//! How it is.\n\n/// A quota.\nstruct Quota;\n/// `Whether` so.\nfn f() {}\n",
        );
        assert_eq!((figures.doc_summaries, figures.questions), (3, 2));
    }

    #[test]
    fn names_count_by_words_and_places() {
        let figures = figures_of(
            "struct Quota; enum RedisURL {} mod inner { pub struct Quota; trait Store { type Key; } }",
        );
        assert_eq!((figures.types(), figures.one_word_types()), (4, 3));
        let repeated: Vec<&str> = figures.repeated_names().map(|(name, _)| name).collect();
        assert_eq!(repeated, ["Quota"]);
    }

    #[test]
    fn only_comments_inside_functions_count() {
        let figures = figures_of("// === impl A ===\nfn f() {\n    // Why.\n    g();\n}\n");
        assert_eq!((figures.code_lines, figures.comments_in_functions), (3, 1));
    }

    #[test]
    fn tests_do_not_count() {
        let figures = figures_of("#[cfg(test)]\nmod tests {\n    /// What.\n    struct A;\n}\n");
        assert_eq!(figures, Figures::default());
    }
}
