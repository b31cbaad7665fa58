//! A verdict as headers: which dialect speaks, and what each of them says.
//!
//! Where a dialect tells of one limit, it is the one that decided: of a denial the one that lasts
//! longest, else the one nearest to exhaustion. Hidden limits (`announce: false`) are told of nowhere: if
//! one decided, the tightest of the others stands in its place.

mod envoy;
mod github;
mod ietf;
mod ietf_06;
mod named;
mod x_ratelimit;

use std::time::Duration;

use itoa::Buffer;
use tidegate_limiter::{Decision, Dialect, LimitStatus, Origin, Retry, Verdict};

use crate::answers::{HeaderNames, Headers};
use crate::seconds;

pub use x_ratelimit::DefaultNumbers;

/// What the deciding limit says, where the window is told beside it: the numbers as they are configured.
#[derive(Clone, Copy, Debug)]
struct Windowed {
    limit: u64,
    /// Never more than the limit, though a bucket may hold more than it refills in its window.
    remaining: u64,
    /// Seconds.
    reset: u64,
}

/// Tells `write` each header of the answer, name (in lower case) and value. The rule of the deciding
/// limit says in which dialect, else `otherwise` does. Allocates nothing in the default dialect.
pub fn headers(verdict: &Verdict, otherwise: &Headers, mut write: impl FnMut(&str, &str)) {
    let deciding = verdict.announced();
    let retry_after = seconds::retry_after(verdict);
    match spoken(deciding.as_ref(), otherwise) {
        Err(names) => named::write(deciding.as_ref(), names, &mut write),
        Ok(dialect) => match dialect {
            Dialect::XRateLimit => {
                DefaultNumbers::new(deciding.as_ref(), retry_after).write(&mut write);
            }
            Dialect::Ietf => ietf::write(verdict, &mut write),
            Dialect::Ietf06 => ietf_06::write(verdict, deciding.as_ref(), &mut write),
            Dialect::GitHub => github::write(verdict, deciding.as_ref(), &mut write),
            Dialect::Envoy => envoy::write(verdict, deciding.as_ref(), &mut write),
            Dialect::None => {}
        },
    }
    if spoken(deciding.as_ref(), otherwise) != Ok(Dialect::None)
        && is_over(verdict, deciding.as_ref())
    {
        write("x-ratelimit-over", "true");
    }
    if let Some(seconds) = retry_after {
        write("retry-after", Buffer::new().format(seconds));
    }
}

// === impl Windowed ===

impl Windowed {
    fn of(status: &LimitStatus<'_>) -> Option<Self> {
        let (decision, quota) = (status.decision()?, status.quota()?);
        Some(Self {
            limit: quota.limit(),
            remaining: decision.remaining.min(quota.limit()),
            reset: seconds::round_up(until_reset(status, decision)),
        })
    }
}

/// Whether the request is allowed over a limit that clients are told of. Nothing remains of such a limit, so
/// that all limits are looked at only if nothing remains of the tightest.
#[inline]
fn is_over(verdict: &Verdict, deciding: Option<&LimitStatus<'_>>) -> bool {
    let remaining = |status: &LimitStatus<'_>| status.decision().map(|it| it.remaining);
    deciding.and_then(remaining) == Some(0) && verdict.is_over(|limit| !limit.is_hidden())
}

/// The dialect that speaks, or the names that an operator gave.
#[inline]
fn spoken<'h>(
    deciding: Option<&LimitStatus<'_>>,
    otherwise: &'h Headers,
) -> Result<Dialect, &'h HeaderNames> {
    match (deciding.and_then(dialect_of), otherwise) {
        (None, Headers::Named(names)) => Err(names),
        (Some(dialect), _) | (None, &Headers::Dialect(dialect)) => Ok(dialect),
    }
}

/// The dialect that the rule of the limit asks for.
#[inline]
fn dialect_of(status: &LimitStatus<'_>) -> Option<Dialect> {
    match status.origin() {
        Origin::Rule { rule, .. } => rule.headers(),
        Origin::Override(_) => None,
    }
}

/// When there is something to come back for: the end of a refusal, so that it is no other time than
/// `Retry-After`, else when the whole limit is there again.
fn until_reset(status: &LimitStatus<'_>, decision: &Decision) -> Duration {
    match status.retry() {
        Some(Retry::After(wait)) => wait,
        Some(Retry::Never) | None => decision.reset_after,
    }
}
