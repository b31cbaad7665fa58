//! What differs between two versions, for people.

use std::fmt::Write;

use super::Bundle;
use super::bundle::BundledFile;

/// The most lines that are shown of each side of a file.
const MOST_LINES: usize = 20;

/// What differs from `old` to `new`: the files, and in each the lines from the first to the last that
/// differ. Empty if nothing does.
pub(crate) fn changes(old: &Bundle, new: &Bundle) -> String {
    let mut text = String::new();
    for file in new.files() {
        match find(old, &file.name) {
            Some(before) if before.text == file.text => {}
            Some(before) => {
                let _ = writeln!(text, "  changed {}", file.name);
                differing(&mut text, &before.text, &file.text);
            }
            None => {
                let _ = writeln!(text, "  added   {} ({})", file.name, n_lines(&file.text));
            }
        }
    }
    for file in old.files() {
        if find(new, &file.name).is_none() {
            let _ = writeln!(text, "  removed {} ({})", file.name, n_lines(&file.text));
        }
    }
    if old.merge_domains != new.merge_domains {
        let word = if new.merge_domains { "may" } else { "may not" };
        let _ = writeln!(text, "  files {word} share a domain");
    }
    text
}

fn find<'b>(bundle: &'b Bundle, name: &str) -> Option<&'b BundledFile> {
    bundle.files().iter().find(|file| file.name == name)
}

/// Writes the lines between those that two texts begin and end with alike.
fn differing(text: &mut String, old: &str, new: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let alike = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(alike).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(alike)
        .count();
    side(text, '-', before, &old[..old.len() - after]);
    side(text, '+', before, &new[..new.len() - after]);
}

fn side(text: &mut String, sign: char, before: usize, lines: &[&str]) {
    for (at, line) in lines.iter().take(MOST_LINES).enumerate() {
        let line: String = line.chars().filter(|char| !char.is_control()).collect();
        let _ = writeln!(text, "  {:>6} {sign} {line}", before + at + 1);
    }
    if lines.len() > MOST_LINES {
        let _ = writeln!(text, "         {sign} … {} more", lines.len() - MOST_LINES);
    }
}

fn n_lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tidegate_rules::Source;

    use super::*;

    fn bundle(files: &[(&str, &str)]) -> Bundle {
        let found: Vec<(PathBuf, Source)> = files
            .iter()
            .map(|(name, text)| {
                let source = Source {
                    name: (*name).to_owned(),
                    bytes: (*text).into(),
                };
                (PathBuf::new(), source)
            })
            .collect();
        Bundle::new(&found, false).expect("the names differ")
    }

    #[test]
    fn only_what_differs_is_told() {
        let old = bundle(&[("a", "1\n2\n3\n4\n"), ("gone", "x\n"), ("same", "s")]);
        let new = bundle(&[("a", "1\nII\n2.5\n3\n4\n"), ("same", "s"), ("new", "")]);
        let expected = "  changed a\n       2 - 2\n       2 + II\n       3 + 2.5\n  \
                        added   new (0 lines)\n  removed gone (1 line)\n";
        assert_eq!(changes(&old, &new), expected);
        assert_eq!(changes(&old, &old), "");
    }

    #[test]
    fn repeated_lines_are_not_counted_twice() {
        let (old, new) = (bundle(&[("a", "x\nx\n")]), bundle(&[("a", "x\nx\nx\n")]));
        assert_eq!(changes(&old, &new), "  changed a\n       3 + x\n");
    }

    #[test]
    fn a_long_change_is_cut_short() {
        let long = "a line\n".repeat(50);
        let told = changes(&bundle(&[("a", "")]), &bundle(&[("a", &long)]));
        assert_eq!(told.lines().count(), 1 + MOST_LINES + 1, "{told}");
        assert!(told.ends_with("+ … 30 more\n"), "{told}");
    }
}
