//! Rules about plain text and names: what any file may say and be called.

use crate::Fault;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "common", "helper", "helpers", "manager", "misc", "util", "utils",
];

/// Marks of unfinished work. In two parts, so that this file does not fault itself.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// The beginnings of paths on somebody's machine. In two parts for the same reason.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
];

/// The one place dependencies come from, as Cargo.lock writes it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Finds marks of unfinished work that name no issue: `MARK(#12)` is fine.
pub fn unfinished(path: &str, text: &str) -> Vec<Fault> {
    let says_unfinished = |line: &str| {
        MARKS.iter().any(|mark| {
            line.match_indices(mark).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = &line[at + mark.len()..];
                let is_word = !before.is_some_and(char::is_alphanumeric)
                    && !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
                is_word && !after.starts_with("(#")
            })
        })
    };
    faults_of_lines(
        path,
        text,
        says_unfinished,
        "unfinished work without an issue number",
    )
}

/// Finds paths that exist on one machine only.
pub fn machine_paths(path: &str, text: &str) -> Vec<Fault> {
    let names_a_machine = |line: &str| {
        MACHINE_PATHS.iter().any(|start| {
            line.match_indices(start).any(|(at, _)| {
                !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '.')
            })
        })
    };
    faults_of_lines(path, text, names_a_machine, "a path of one machine")
}

/// Finds dependencies of a Cargo.lock that come from elsewhere than the public registry.
pub fn foreign_registries(path: &str, text: &str) -> Vec<Fault> {
    let is_foreign = |line: &str| {
        line.strip_prefix("source = ")
            .is_some_and(|source| source.trim_matches('"') != REGISTRY)
    };
    faults_of_lines(
        path,
        text,
        is_foreign,
        "a dependency that is not from crates.io",
    )
}

/// Finds file names against the layout: `mod.rs`, and names that say nothing.
pub fn bad_name(path: &str) -> Option<Fault> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.strip_suffix(".rs")?;
    if stem == "mod" {
        return Some(Fault::new(
            path,
            "the root of a folder foo/ is foo.rs beside it",
        ));
    }
    EMPTY_NAMES
        .contains(&stem)
        .then(|| Fault::new(path, "the name says nothing of the contents"))
}

/// Finds Rust files that do not begin with a word on what they are.
pub fn missing_introduction(path: &str, text: &str) -> Option<Fault> {
    (!text.starts_with("//! ")).then(|| Fault::at(path, 1, "no `//!` says what the file is"))
}

fn faults_of_lines(
    path: &str,
    text: &str,
    is_bad: impl Fn(&str) -> bool,
    message: &str,
) -> Vec<Fault> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| is_bad(line))
        .map(|(index, _)| Fault::at(path, index + 1, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_needs_an_issue() {
        let mark = MARKS[0];
        assert_eq!(
            unfinished("a.rs", &format!("fine\n// {mark}: later")).len(),
            1
        );
        assert_eq!(unfinished("a.rs", &format!("// {mark}(#12): later")), []);
        assert_eq!(unfinished("a.rs", &format!("{mark}S = 1")), []);
    }

    #[test]
    fn machine_paths_are_seen() {
        for start in MACHINE_PATHS {
            assert_eq!(
                machine_paths("a.md", &format!("see {start}x")).len(),
                1,
                "{start}"
            );
        }
        assert_eq!(
            machine_paths("a.md", &format!("example.org{}", MACHINE_PATHS[0])),
            []
        );
    }

    #[test]
    fn foreign_registries_are_seen() {
        let lock = |source: &str| format!("[[package]]\nname = \"a\"\nsource = \"{source}\"\n");
        assert_eq!(foreign_registries("Cargo.lock", &lock(REGISTRY)), []);
        assert_eq!(
            foreign_registries("Cargo.lock", &lock("sparse+http://mirror.local/")).len(),
            1
        );
        assert_eq!(
            foreign_registries("Cargo.lock", &lock("git+https://github.com/a/b")).len(),
            1
        );
    }

    #[test]
    fn names_follow_the_layout() {
        assert!(bad_name("crates/a/src/table/mod.rs").is_some());
        assert!(bad_name("crates/a/src/utils.rs").is_some());
        assert_eq!(bad_name("crates/a/src/table.rs"), None);
        assert_eq!(bad_name("docs/common"), None);
    }

    #[test]
    fn files_introduce_themselves() {
        assert!(missing_introduction("a.rs", "use std::fs;\n").is_some());
        assert_eq!(missing_introduction("a.rs", "//! What it is.\n"), None);
    }
}
