//! Terminal colours, for the two renderings that may use them.

/// Whether a rendering may use terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// ANSI escapes.
    Always,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Error,
    Warning,
    Good,
    Strong,
    Faint,
}

// === impl Color ===

impl Color {
    /// `text`, painted if colours are allowed.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Error => "1;31",
            Paint::Warning => "1;33",
            Paint::Good => "32",
            Paint::Strong => "1",
            Paint::Faint => "2",
        };
        match self {
            Self::Never => text.to_owned(),
            Self::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
