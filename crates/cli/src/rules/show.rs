//! `tidegate rules show`.

use std::fmt::Write;
use std::process::ExitCode;

use super::Shelf;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::terminal;

/// Prints the files of a version.
pub(super) async fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let shelf = Shelf::open(&args.look.settings())?;
    let number = match args.version {
        Some(number) => number,
        None => shelf
            .newest_number()
            .await?
            .ok_or_else(|| shelf.nothing())?,
    };
    let bundle = shelf.fetch(number).await?;
    let mut text = String::new();
    for file in bundle.files() {
        if bundle.files().len() > 1 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# --- {}", file.name);
        }
        text += &file.text;
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}
