//! Links of the Markdown files: what they point at must exist.

use crate::Fault;

/// Finds links to files and headings that are not there. `read` is asked with paths from the root
/// of the repository and gives the text of a page, an empty one for what is no page, or nothing.
pub fn broken(path: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Fault> {
    let is_there = |target: &str| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let page = if file.is_empty() {
            Some(text.to_owned())
        } else {
            resolve(path, file).and_then(|resolved| read(&resolved))
        };
        page.is_some_and(|page| heading.is_empty() || headings(&page).any(|slug| slug == heading))
    };
    targets(text)
        .filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"))
        .filter(|(_, target)| !is_there(target))
        .map(|(line, target)| {
            Fault::at(path, line, format!("link to {target}, which is not there"))
        })
        .collect()
}

/// Finds files that a page should link to and does not.
pub fn unlisted<'a>(path: &str, text: &str, files: impl Iterator<Item = &'a str>) -> Vec<Fault> {
    let listed: Vec<String> = targets(text)
        .filter_map(|(_, target)| resolve(path, target))
        .collect();
    files
        .filter(|file| !listed.iter().any(|each| each == file))
        .map(|file| Fault::new(path, format!("does not link to {file}")))
        .collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn headings(page: &str) -> impl Iterator<Item = String> {
    page.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

/// The line and target of each inline link outside code.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().flat_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let line = if in_code { "" } else { line };
        line.match_indices("](").filter_map(move |(at, _)| {
            let in_span = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split([')', ' ']).next()?;
            (!in_span).then_some((index + 1, target))
        })
    })
}

/// The path from the root that `target` means in the file `path`; `None` if it leaves the root.
fn resolve(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, broken_lines: &[usize]) {
        let read = |path: &str| match path {
            "README.md" => Some(String::new()),
            "docs/adr/0001-a.md" => Some("# 1. A `b_c`, and d\n".to_owned()),
            _ => None,
        };
        let faults = broken("docs/page.md", text, read);
        let lines: Vec<usize> = faults.iter().filter_map(|fault| fault.line).collect();
        assert_eq!(lines, broken_lines, "{text}");
    }

    #[test]
    fn links_resolve_from_the_file_they_stand_in() {
        check("[a](../README.md), [b](adr/0001-a.md)", &[]);
        check("fine\n[a](README.md)", &[2]);
        check("[a](../../README.md)", &[1]);
    }

    #[test]
    fn anchors_are_headings() {
        check("[a](adr/0001-a.md#1-a-b_c-and-d)", &[]);
        check("[a](adr/0001-a.md#gone)", &[1]);
        check("# Here\n[a](#here) [b](#gone)", &[2]);
    }

    #[test]
    fn the_web_and_code_are_left_alone() {
        check("[a](https://example.org/x#y)", &[]);
        check("```\n[a](gone.md)\n```\n`[b](gone.md)`", &[]);
    }

    #[test]
    fn unlisted_files_are_seen() {
        let files = ["docs/adr/0001-a.md", "docs/adr/0002-b.md"];
        let text = "[one](docs/adr/0001-a.md)";
        let faults = unlisted("ARCHITECTURE.md", text, files.into_iter());
        assert_eq!(faults.len(), 1);
        assert!(faults[0].message.contains("0002-b.md"));
    }
}
