//! Calls of scripts: by name, joined, or in full.

use super::link::{Preface, Question};
use super::script::{Joinable, Script};
use super::wire::Command;

/// The form of a call: of a script, or of another command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    /// There is none.
    Plain,
    /// By its name.
    ByName(&'a Script),
    /// By its name, with others of it that wait.
    Joined(&'a Joinable, Question<'a>),
    /// With its body.
    InFull(&'a Script),
}

// === impl Form ===

impl<'a> Form<'a> {
    /// The script that goes before the call, if any.
    pub(super) fn preface(self) -> Preface<'a> {
        match self {
            Self::ByName(script) => Preface::Script(script),
            Self::Joined(script, _) => Preface::Script(script.alone()),
            Self::Plain | Self::InFull(_) => Preface::None,
        }
    }

    /// Writes the beginning of the command.
    pub(super) fn begin(self, command: &mut Command<'_>) {
        match self {
            Self::Plain => {}
            Self::ByName(script) => drop(command.arg("EVALSHA").arg(script.sha())),
            Self::Joined(script, _) => drop(command.arg("EVALSHA").arg(script.alone().sha())),
            Self::InFull(script) => drop(command.arg("EVAL").arg(script.body())),
        }
    }

    /// The same call with the body of its script.
    pub(super) fn in_full(self) -> Self {
        match self {
            Self::ByName(script) => Self::InFull(script),
            Self::Joined(script, _) => Self::InFull(script.alone()),
            other => other,
        }
    }
}
