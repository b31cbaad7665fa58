//! The section of bench/RESULTS.md that this harness writes, and the pages that quote it.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

use crate::fleet::ScenarioReport;
use crate::report;

/// How the section begins; it ends where the next one begins. `bench/src/page.rs` keeps it in its place.
const HEADING: &str = "## Promises, measured from outside\n";
const RESULTS: &str = "bench/RESULTS.md";

/// A line of a page that begins so names scenarios, separated by spaces. Their rows stand below it, up to [`QUOTE_END`].
const QUOTE_START: &str = "<!-- measured: ";
const QUOTE_END: &str = "<!-- end -->";

/// Writes the section in the place of the one before, or at the end, and into the pages what they quote of it. If not
/// all was measured, the other rows stay.
pub fn write(
    root: &Path,
    reports: &[ScenarioReport],
    settings: &[String],
    is_all: bool,
) -> Result<(), String> {
    let mut section = section(reports, settings);
    change(&root.join(RESULTS), |page| {
        if !is_all {
            section = merged(section_of(page).unwrap_or_default(), &section);
        }
        Some(replace(page, &section))
    })?;
    pages(root)?
        .iter()
        .try_for_each(|page| change(page, |text| quote(text, &section)))
}

fn change(file: &Path, to: impl FnOnce(&str) -> Option<String>) -> Result<(), String> {
    let faulty = |error: &dyn Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| faulty(&error))?;
    let changed = to(&text).ok_or_else(|| faulty(&format!("`{QUOTE_END}` is missing")))?;
    fs::write(file, changed).map_err(|error| faulty(&error))
}

/// The pages that quote the section.
fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = fs::read_dir(root.join("docs/distribution")).map_err(|error| error.to_string())?;
    let mut pages: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    pages.push(root.join("docs/failure.md"));
    Ok(pages)
}

/// The page with the rows that it asks for, as they stand in the section. None if the end of a quote is missing.
fn quote(page: &str, section: &str) -> Option<String> {
    let mut quoted = String::new();
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        quoted.push_str(line);
        let Some(names) = quoted_names(line) else {
            continue;
        };
        let is_named = |row: &&str| names.iter().any(|name| is_row_of(row, name));
        quoted.push_str(report::TABLE_HEAD);
        for row in section.lines().filter(is_named) {
            quoted.push_str(row);
            quoted.push('\n');
        }
        quoted.push_str(lines.find(|line| line.trim_end() == QUOTE_END)?);
    }
    Some(quoted)
}

/// The names of scenarios in a line that asks for their rows.
fn quoted_names(line: &str) -> Option<Vec<&str>> {
    let names = line.strip_prefix(QUOTE_START)?.split_whitespace();
    Some(names.take_while(|name| *name != "-->").collect())
}

/// A name that ends with `_` is the beginning of several.
fn is_row_of(row: &str, name: &str) -> bool {
    let scenario = row
        .strip_prefix("| ")
        .and_then(|row| row.split(" |").next());
    scenario.is_some_and(|scenario| {
        scenario == name || name.ends_with('_') && scenario.starts_with(name)
    })
}

fn section(reports: &[ScenarioReport], settings: &[String]) -> String {
    let settings = if settings.is_empty() {
        "default settings".to_owned()
    } else {
        format!("**not the default settings**: {}", settings.join(", "))
    };
    let (machine, table) = (machine(), report::table(reports));
    format!(
        "{HEADING}\nWritten by `tests/fleet/run --all --write`: real nodes on a real Redis, {settings}. What the columns mean is in\n\
         [tests/fleet/README.md](../tests/fleet/README.md).\n\nMachine: {machine}.\n\n{table}"
    )
}

/// The section with the rows of a newer one in the place of its own. It says which, and where and when they were measured.
fn merged(section: &str, newer: &str) -> String {
    let scenario = |row: &str| Some(row.strip_prefix("| ")?.split(" |").next()?.to_owned());
    let rows = |of: &str| {
        let rows = newer.lines().filter(|row| is_row_of(row, of));
        rows.flat_map(|row| [row, "\n"]).collect::<String>()
    };
    let mut names: Vec<String> = newer.lines().filter_map(scenario).collect();
    names.dedup();
    names.retain(|name| name != "scenario");
    let machine = newer
        .lines()
        .find_map(|line| line.strip_prefix("Machine: "));
    let note = format!(
        "Measured again, {}: {}\n",
        names.join(", "),
        machine.unwrap_or_default()
    );
    let mut merged = String::new();
    for line in section.lines() {
        match scenario(line).filter(|name| names.contains(name)) {
            Some(name) if is_row_of(merged.lines().last().unwrap_or_default(), &name) => {}
            Some(name) => merged.push_str(&rows(&name)),
            None => {
                if line.starts_with("| scenario |") {
                    merged.extend([&note, "\n"]);
                }
                merged.extend([line, "\n"]);
            }
        }
    }
    let new = names
        .iter()
        .filter(|name| !section.lines().any(|row| is_row_of(row, name)));
    merged.extend(new.map(|name| rows(name)));
    merged
}

/// The section in a page.
fn section_of(page: &str) -> Option<&str> {
    let section = &page[page.find(HEADING)?..];
    let end = section[HEADING.len()..].find("\n## ");
    Some(end.map_or(section, |end| &section[..HEADING.len() + end]))
}

fn replace(page: &str, section: &str) -> String {
    let Some((start, before)) = page.find(HEADING).zip(section_of(page)) else {
        return format!("{}\n\n{section}", page.trim_end());
    };
    let after = &page[start + before.len()..];
    format!("{}{section}{after}", &page[..start])
}

/// One line on the processor, the cores, the kernel, the commit and the day.
fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = |line: &str| {
        Some(
            line.strip_prefix("model name")?
                .split_once(": ")?
                .1
                .to_owned(),
        )
    };
    let processor = info.lines().find_map(model);
    format!(
        "{}, {cores} cores, Linux {}, commit {}, {}",
        processor.unwrap_or_else(|| "unknown processor".to_owned()),
        output("uname", &["-r"]),
        output("git", &["describe", "--always", "--dirty"]),
        output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
    )
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_replaces_the_one_before_and_nothing_else() {
        let section = format!("{HEADING}\nnew\n");
        let added = replace("# Page\n\nfirst\n", &section);
        assert_eq!(added, format!("# Page\n\nfirst\n\n{section}"));
        let page = format!("# Page\n\n{HEADING}\nold\n\n## Next\n\nlast\n");
        let replaced = replace(&page, &section);
        assert_eq!(replaced, format!("# Page\n\n{section}\n## Next\n\nlast\n"));
    }

    #[test]
    fn what_is_measured_again_replaces_its_rows_and_says_so() {
        let head = report::TABLE_HEAD;
        let before = format!("{HEADING}\nMachine: old.\n\n{head}| a | 1 |\n| a | 2 |\n| b | 3 |\n");
        let newer = format!("{HEADING}\nMachine: new.\n\n{head}| a | 4 |\n| a | 5 |\n| c | 6 |\n");
        let rows = "| a | 4 |\n| a | 5 |\n| b | 3 |\n| c | 6 |\n";
        let expected =
            format!("{HEADING}\nMachine: old.\n\nMeasured again, a, c: new.\n\n{head}{rows}");
        assert_eq!(merged(&before, &newer), expected);
    }

    #[test]
    fn a_page_quotes_the_rows_of_the_scenarios_that_it_names() {
        let section = "| a_1 | x |\n| b_1 | y |\n| a_2 | z |\n| b_1_2 | x |\n";
        let page = "text\n<!-- measured: a_ b_1 -->\nold\n<!-- end -->\nmore\n";
        let head = report::TABLE_HEAD;
        assert_eq!(
            quote(page, section).unwrap(),
            format!(
                "text\n<!-- measured: a_ b_1 -->\n{head}| a_1 | x |\n| b_1 | y |\n| a_2 | z |\n<!-- end -->\nmore\n"
            )
        );
        assert_eq!(quote("<!-- measured: a_ -->\nold\n", section), None);
    }

    #[test]
    fn the_pages_quote_what_the_results_say() {
        let root = crate::root();
        let results = fs::read_to_string(root.join(RESULTS)).unwrap();
        let pages = pages(&root).unwrap();
        for page in &pages {
            let text = fs::read_to_string(page).unwrap();
            let has_quote = text.lines().any(|line| quoted_names(line).is_some());
            // `node` limits are not shared.
            assert!(has_quote || page.ends_with("node.md"), "{}", page.display());
            for name in text.lines().filter_map(quoted_names).flatten() {
                let is_there = results.lines().any(|row| is_row_of(row, name));
                assert!(is_there, "{}: no scenario {name}", page.display());
            }
            let fresh = quote(&text, &results).unwrap();
            assert_eq!(
                text,
                fresh,
                "{}: run `tests/fleet/run --all --write`",
                page.display()
            );
        }
    }
}
