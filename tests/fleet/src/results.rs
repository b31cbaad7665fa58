//! The section of bench/RESULTS.md that this harness writes.

use std::path::Path;
use std::process::Command;
use std::{fs, thread};

use crate::fleet::ScenarioReport;
use crate::report;

/// How the section begins; it ends where the next one begins. `bench/src/page.rs` keeps it in its place.
const HEADING: &str = "## Promises, measured from outside\n";

/// Writes the section in the place of the one before, or at the end.
pub fn write(page: &Path, reports: &[ScenarioReport], settings: &[String]) -> Result<(), String> {
    let before = fs::read_to_string(page).map_err(|error| error.to_string())?;
    let section = section(reports, settings);
    fs::write(page, replace(&before, &section)).map_err(|error| error.to_string())
}

fn section(reports: &[ScenarioReport], settings: &[String]) -> String {
    let settings = if settings.is_empty() {
        "default settings".to_owned()
    } else {
        format!("**not the default settings**: {}", settings.join(", "))
    };
    let count = report::count(reports);
    let (machine, table) = (machine(), report::table(reports));
    format!(
        "{HEADING}\nWritten by `tests/fleet/run --all --write`: real nodes on a real Redis, {settings}. What the columns mean is in\n\
         [tests/fleet/README.md](../tests/fleet/README.md).\n\nMachine: {machine}.\n\n{count}.\n\n{table}"
    )
}

fn replace(page: &str, section: &str) -> String {
    let Some(start) = page.find(HEADING) else {
        return format!("{}\n\n{section}", page.trim_end());
    };
    let after = &page[start + HEADING.len()..];
    let next = after.find("\n## ").map_or("", |next| &after[next..]);
    format!("{}{section}{next}", &page[..start])
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
}
