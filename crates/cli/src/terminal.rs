//! Output: what the terminal can show, and the writing.

use std::env;
use std::io::{self, IsTerminal, Write};

use tidegate_rules::Color;

/// Colours for a terminal, unless the user wants none (no-color.org); none for a file or a pipe.
pub(crate) fn color(stream: &impl IsTerminal) -> Color {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    if stream.is_terminal() && !unwanted && !dumb {
        Color::Always
    } else {
        Color::Never
    }
}

/// Writes to stdout. Who closed it, as `head` does, wants no more: that is no failure, and `print!`
/// would panic.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Writes to stderr, likewise.
pub(crate) fn eprint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
