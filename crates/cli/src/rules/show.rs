//! `tidegate rules show`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use super::Shelf;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::terminal;
use crate::version::Bundle;

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
    match &args.into {
        Some(folder) => {
            write(&bundle, folder)?;
            let count = bundle.files().len();
            let s = if count == 1 { "" } else { "s" };
            let folder = folder.display();
            terminal::print(&format!("version {number}: {count} file{s} in {folder}\n"));
        }
        None => terminal::print(&text(&bundle)),
    }
    Ok(ExitCode::SUCCESS)
}

/// All files after each other, with their names if there are several.
fn text(bundle: &Bundle) -> String {
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
    text
}

/// Writes all files, and over none: somebody's work may be in it.
fn write(bundle: &Bundle, folder: &Path) -> Result<(), Failure> {
    for file in bundle.files() {
        // The name stays in its folder, or it would be no version.
        let path = folder.join(&file.name);
        write_new(&path, &file.text).map_err(|reason| Failure::NotWritten { path, reason })?;
    }
    Ok(())
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create_new(path)?.write_all(text.as_bytes())
}
