//! The opening of an HTTP/2 connection for the requests in line.
//!
//! ```text
//!  None ──first in line takes a place──► InProgress ──fails──► Failed ──first in line takes the error──► None
//!   ▲                                        │
//!   └──────────── opens, or panics ──────────┘
//! ```

use std::rc::Rc;

use super::connect::ProtocolNeed;
use super::error::ForwardError;
use super::local::LocalTarget;
use super::opening::open;

/// The opening of a connection for the requests in line.
#[derive(Debug, Default)]
pub(super) enum LineOpening {
    /// None is in progress.
    #[default]
    None,
    /// One is in progress, perhaps begun for a request that has left.
    InProgress,
    /// The last one failed, and no request knows yet.
    Failed(ForwardError),
}

/// The task that opens a connection for the line. At its end, by a panic too, the first request in line looks again.
#[derive(Debug)]
pub(super) struct LineOpeningGuard(Rc<LocalTarget>);

/// Opens a connection for the first request in line, or for the one that is first when it is open.
pub(super) async fn open_for_line(opening: LineOpeningGuard) {
    let target = &opening.0;
    // Dropped, a connection is kept for the request that is first in line.
    if let Err(error) = open(Rc::clone(target), ProtocolNeed::Any).await {
        target.line_opening.replace(LineOpening::Failed(error));
    }
}

// === impl LineOpeningGuard ===

impl LineOpeningGuard {
    pub(super) fn new(target: &Rc<LocalTarget>) -> Self {
        target.line_opening.replace(LineOpening::InProgress);
        Self(Rc::clone(target))
    }
}

impl Drop for LineOpeningGuard {
    fn drop(&mut self) {
        if self.0.is_opening_for_line() {
            self.0.line_opening.replace(LineOpening::None);
        }
        self.0.stream_freed.notify_one();
    }
}
