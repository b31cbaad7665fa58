//! The log: on stderr, for people or for programs, as much of it as is wanted.

mod filter;

use std::io;
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::terminal;
pub(crate) use filter::{Filter, NotAFilter};

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: an object of JSON on each line.
    Json,
}

/// Changes the log while it is written.
#[derive(Debug)]
pub(crate) struct LogHandle {
    targets: reload::Handle<Targets, Registry>,
    filter: Mutex<Filter>,
}

/// Begins to log. A second log of one process is not begun.
pub(crate) fn start(filter: Filter, format: LogFormat) -> LogHandle {
    let (targets, handle) = reload::Layer::new(filter.targets());
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => {
            let color = terminal::color(&io::stderr()) == tidegate_rules::Color::Always;
            lines.with_ansi(color).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // It fails only if there is a log already.
    let _ = tracing_subscriber::registry()
        .with(targets)
        .with(lines)
        .try_init();
    LogHandle {
        targets: handle,
        filter: Mutex::new(filter),
    }
}

// === impl LogHandle ===

impl LogHandle {
    /// What is logged.
    pub(crate) fn filter(&self) -> String {
        let filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        filter.to_string()
    }

    /// Logs more, or less, from now on.
    pub(crate) fn set(&self, filter: Filter) {
        // It fails only once the log is gone.
        let _ = self.targets.reload(filter.targets());
        *self.filter.lock().unwrap_or_else(PoisonError::into_inner) = filter;
    }
}
