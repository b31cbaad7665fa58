//! The wall clock of what is shown: when a reload was settled. Nothing is decided by it.

use std::time::SystemTime;

/// The time of the machine.
pub(crate) fn now() -> SystemTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is shown, nothing is decided by it"
    )]
    SystemTime::now()
}
