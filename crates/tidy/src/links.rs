//! Links of the Markdown files: what they point at must exist.

use crate::Fault;

/// Finds links to files that are not there. `exists` is asked with paths from the root of the
/// repository.
pub fn broken(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (line, target) in targets(text) {
        let file = target.split('#').next().unwrap_or_default();
        if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let found = resolve(path, file).is_some_and(|resolved| exists(&resolved));
        if !found {
            faults.push(Fault::at(
                path,
                line,
                format!("link to {target}, which is not there"),
            ));
        }
    }
    faults
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
        let exists = |path: &str| ["README.md", "docs/adr/0001-a.md"].contains(&path);
        let faults = broken("docs/page.md", text, exists);
        let lines: Vec<usize> = faults.iter().filter_map(|fault| fault.line).collect();
        assert_eq!(lines, broken_lines, "{text}");
    }

    #[test]
    fn links_resolve_from_the_file_they_stand_in() {
        check("[a](../README.md), [b](adr/0001-a.md#why)", &[]);
        check("fine\n[a](README.md)", &[2]);
        check("[a](../../README.md)", &[1]);
    }

    #[test]
    fn the_web_and_code_are_left_alone() {
        check("[a](https://example.org/x) [b](#here)", &[]);
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
