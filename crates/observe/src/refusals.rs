//! The log of refusals: a line for some of them, if they are asked for.

use tidegate_limiter::{Answer, LimitStatus, Origin, Retry, Verdict};

use tidegate_rules::Domain;

use crate::dice::Dice;
use crate::top::Key;
use crate::{KeyLogging, LimiterRequest, RefusalLog};

impl RefusalLog {
    /// Logs a request, if it was refused and the dice say so.
    #[inline]
    pub(crate) fn note(self, request: &LimiterRequest<'_>, verdict: &Verdict, dice: &Dice) {
        if let Self::Sampled { share, keys } = self
            && verdict.answer() == Answer::Refused
            && dice.in_millionths(share.millionths())
        {
            write(request, verdict, keys);
        }
    }
}

#[cold]
fn write(request: &LimiterRequest<'_>, verdict: &Verdict, keys: KeyLogging) {
    let deciding = verdict.deciding();
    let origin = deciding.as_ref().map(LimitStatus::origin);
    let (rule, limit) = match origin {
        Some(Origin::Rule { rule, limit }) => (Some(rule.path()), Some(limit.description())),
        Some(Origin::Override(_)) | None => (None, None),
    };
    let key = match keys {
        KeyLogging::Hidden => None,
        KeyLogging::Shown => deciding.as_ref().and_then(|limit| key(request, limit)),
    };
    let retry_after_ms = match verdict.retry() {
        Some(Retry::After(wait)) => Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        Some(Retry::Never) | None => None,
    };
    // The rules' own spelling, for a domain without rules is a client's word.
    let domain = verdict.rules().domain(request.domain).map(Domain::name);
    tracing::info!(
        target: "tidegate::refusals",
        domain,
        rule,
        limit,
        key,
        retry_after_ms,
        "refused"
    );
}

/// Whom the limit told apart.
fn key(request: &LimiterRequest<'_>, limit: &LimitStatus<'_>) -> Option<String> {
    let Origin::Rule { rule, .. } = limit.origin() else {
        return None;
    };
    let descriptor = request.descriptors.get(limit.descriptor())?;
    let mut text = String::new();
    Key::new(rule, descriptor.entries).write(&mut text);
    Some(text)
}
