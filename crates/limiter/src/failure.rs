//! The failure policy: who speaks for a limit when the store could not decide on it.

use tidegate_rules::OnFailure;

use crate::{Answer, Origin};

/// The answer for a limit that the store could not decide. One that came with the request has no policy
/// of its own, and goes by the default.
///
/// `local` asks for the embedded store of the node; until one stands beside a remote store there is
/// nobody else to ask, and the request passes. The verdict says that it was made without the store.
pub(crate) fn answer(origin: Origin<'_>) -> Answer {
    let policy = match origin {
        Origin::Rule { limit, .. } => limit.on_failure(),
        Origin::Override(_) => OnFailure::default(),
    };
    match policy {
        OnFailure::Local | OnFailure::Allow => Answer::Allowed,
        OnFailure::Deny => Answer::Refused,
    }
}
