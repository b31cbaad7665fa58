//! The failure policy: who speaks for a limit when the store could not decide on it.

use tidegate_rules::{Limit, OnFailure};

use crate::Answer;

/// The answer for a limit that the store could not decide; `None` is a limit that came with the
/// request and has no policy of its own.
///
/// `local` asks for the embedded store of the node; until one stands beside a remote store there is
/// nobody else to ask, and the request passes. The verdict says that it was made without the store.
pub(crate) fn answer(limit: Option<&Limit>) -> Answer {
    match limit.map(Limit::on_failure).unwrap_or_default() {
        OnFailure::Local | OnFailure::Allow => Answer::Allowed,
        OnFailure::Deny => Answer::Refused,
    }
}
