//! `tidegate rules history`.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use tidegate_store_redis::book::Entry;

use super::Shelf;
use crate::args::{Format, HistoryArgs};
use crate::failure::Failure;
use crate::version::About;
use crate::{terminal, timestamp};

/// A version for programs. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Line {
    version: u64,
    newest: bool,
    pushed_at: String,
    author: String,
    message: String,
    files: usize,
    bytes: u64,
    sha256: String,
    restores: Option<u64>,
}

/// Lists the versions that are kept, the newest first.
pub(super) async fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    let shelf = Shelf::open(&args.look.settings())?;
    let history = shelf.book.history().await;
    let history = history.map_err(|it| shelf.failure(it))?;
    let newest = shelf.newest_number().await?;
    let lines: Vec<Line> = history
        .entries
        .iter()
        .map(|entry| line(entry, newest))
        .collect();
    match args.format {
        Format::Json => {
            // A list of strings and numbers always has a JSON form.
            let json = serde_json::to_string_pretty(&lines).unwrap_or_default();
            terminal::print(&format!("{json}\n"));
        }
        Format::Text if lines.is_empty() => return Err(shelf.nothing()),
        Format::Text => terminal::print(&table(&lines)),
    }
    if history.unreadable > 0 {
        let count = history.unreadable;
        terminal::eprint(&format!(
            "warning: {count} more in {} that no push has written\n",
            shelf.place
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(entry: &Entry, newest: Option<u64>) -> Line {
    let About {
        author,
        message,
        files,
        restores,
    } = About::read(&entry.about);
    Line {
        version: entry.number,
        newest: newest == Some(entry.number),
        pushed_at: timestamp::since_1970(entry.at),
        author,
        message,
        files,
        bytes: entry.bytes,
        sha256: entry.digest.to_string(),
        restores,
    }
}

/// The lines for people; an asterisk is beside the newest.
fn table(lines: &[Line]) -> String {
    let width = |of: &dyn Fn(&Line) -> usize, least: usize| {
        lines.iter().map(of).max().unwrap_or_default().max(least)
    };
    let by = width(&|line| line.author.chars().count(), "by".len());
    let bytes = width(&|line| line.bytes.to_string().len(), "bytes".len());
    let mut text = format!(
        "  version  {:<20}  {:<by$}  files  {:>bytes$}  message\n",
        "pushed", "by", "bytes"
    );
    for line in lines {
        let mark = if line.newest { '*' } else { ' ' };
        let Line {
            version,
            pushed_at,
            author,
            files,
            ..
        } = line;
        let said = format!(
            "{mark} {version:>7}  {pushed_at:<20}  {author:<by$}  {files:>5}  {:>bytes$}  {}",
            line.bytes, line.message
        );
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", said.trim_end());
    }
    text
}
