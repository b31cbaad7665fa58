//! What is done to one caller.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_limiter::{
    ActiveBan, BanTerm, Entry, Limiter, NewBan, Origin, RuleSet, Ruling, Store, Verdict,
};

use crate::admin::audit::{self, Caller, Change};
use crate::admin::body::{Key, OwnedEntry};
use crate::admin::fault::Fault;
use crate::admin::query::Query;
use crate::admin::reply::{self, Reply};
use crate::admin::view::{BanView, EntryView, LimitView};
use crate::peer::Peer;

/// Hits to give back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Grant {
    domain: String,
    entries: Vec<OwnedEntry>,
    hits: u64,
}

/// A ban to make. How long it lasts must be said, so that nobody is banned for ever by leaving it out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct BanBody {
    domain: String,
    entries: Vec<OwnedEntry>,
    for_seconds: Option<u64>,
    #[serde(default)]
    until_lifted: bool,
    reason: Option<String>,
}

/// What the limits of a caller say.
#[derive(Debug, Serialize)]
struct CallerView<'a> {
    domain: &'a str,
    /// The path of the rule that the descriptor ends at.
    rule: Option<&'a str>,
    entries: Vec<EntryView<'a>>,
    limits: Vec<StandingView<'a>>,
    ban: Option<BanView<'a>>,
}

/// What one limit of a caller says.
#[derive(Debug, Serialize)]
struct StandingView<'a> {
    #[serde(flatten)]
    limit: LimitView<'a>,
    /// `null` for a limit that counts nothing.
    remaining: Option<u64>,
    reset_after_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ResetView {
    /// How many counters there were.
    counters_reset: usize,
}

#[derive(Debug, Serialize)]
struct UnbanView {
    /// Whether there was a ban.
    unbanned: bool,
}

#[derive(Debug, Serialize)]
struct BansView<'a> {
    bans: Vec<BanView<'a>>,
    total: usize,
    /// The `offset` of the next page; `null` on the last.
    next: Option<usize>,
}

/// Ten years, the longest window of a limit too. Who means longer means until it is lifted.
const LONGEST_BAN: u64 = 10 * 365 * 86_400;

/// What every limit of a caller says now.
pub(in crate::admin) async fn lookup<S: Store>(
    limiter: &Limiter<S>,
    key: Key,
) -> Result<Reply, Fault> {
    view(limiter, &key.domain, &OwnedEntry::borrow(&key.entries)).await
}

/// Forgets the counters of a caller.
pub(in crate::admin) async fn reset<S: Store>(
    limiter: &Limiter<S>,
    peer: Peer,
    key: Key,
) -> Result<Reply, Fault> {
    let entries = OwnedEntry::borrow(&key.entries);
    let counters_reset = limiter.reset(&key.domain, &entries).await?;
    let change = Change {
        peer,
        what: "reset",
        outcome: &format!("{counters_reset} counters forgotten"),
    };
    note(limiter, change, &key.domain, &entries);
    Ok(reply::json(&ResetView { counters_reset }))
}

/// Gives hits back to a caller.
pub(in crate::admin) async fn grant<S: Store>(
    limiter: &Limiter<S>,
    peer: Peer,
    grant: Grant,
) -> Result<Reply, Fault> {
    let entries = OwnedEntry::borrow(&grant.entries);
    limiter.grant(&grant.domain, &entries, grant.hits).await?;
    let change = Change {
        peer,
        what: "grant",
        outcome: &format!("{} hits given back", grant.hits),
    };
    note(limiter, change, &grant.domain, &entries);
    view(limiter, &grant.domain, &entries).await
}

/// Refuses a caller for a time.
pub(in crate::admin) async fn ban<S: Store>(
    limiter: &Limiter<S>,
    peer: Peer,
    ban: BanBody,
) -> Result<Reply, Fault> {
    let entries = OwnedEntry::borrow(&ban.entries);
    let term = ban.term()?;
    let reason = ban.reason.as_deref();
    let new = NewBan { term, reason };
    limiter.ban(&ban.domain, &entries, new).await?;
    let outcome = match term {
        BanTerm::For(length) => format!("banned for {} s", length.as_secs()),
        BanTerm::UntilLifted => "banned until lifted".to_owned(),
    };
    let reasoned = reason.map(|reason| format!("{outcome}: {reason}"));
    let change = Change {
        peer,
        what: "ban",
        outcome: reasoned.as_deref().unwrap_or(&outcome),
    };
    note(limiter, change, &ban.domain, &entries);
    view(limiter, &ban.domain, &entries).await
}

/// Lifts the ban on a caller.
pub(in crate::admin) async fn unban<S: Store>(
    limiter: &Limiter<S>,
    peer: Peer,
    key: Key,
) -> Result<Reply, Fault> {
    let entries = OwnedEntry::borrow(&key.entries);
    let unbanned = limiter.unban(&key.domain, &entries).await?.is_some();
    let change = Change {
        peer,
        what: "unban",
        outcome: if unbanned {
            "lifted"
        } else {
            "there was no ban"
        },
    };
    note(limiter, change, &key.domain, &entries);
    Ok(reply::json(&UnbanView { unbanned }))
}

/// A page of all bans.
pub(in crate::admin) async fn bans<S: Store>(
    limiter: &Limiter<S>,
    mut query: Query<'_>,
) -> Result<Reply, Fault> {
    let page = query.take_page()?;
    query.finish()?;
    let bans = limiter.bans().await?;
    let shown = bans.iter().skip(page.offset).take(page.limit);
    Ok(reply::json(&BansView {
        bans: shown.map(BanView::from).collect(),
        total: bans.len(),
        next: page.next(bans.len()),
    }))
}

async fn view<S: Store>(
    limiter: &Limiter<S>,
    domain: &str,
    entries: &[Entry<'_>],
) -> Result<Reply, Fault> {
    let verdict = limiter.lookup(domain, entries).await?;
    let ban: Option<ActiveBan> = limiter.ban_on(domain, entries).await?;
    Ok(reply::json(&CallerView {
        domain,
        rule: rule_of(verdict.rules(), domain, entries),
        entries: EntryView::all(entries.iter().copied()),
        limits: standings(&verdict),
        ban: ban.as_ref().map(BanView::from),
    }))
}

/// Writes down a change.
fn note<S>(limiter: &Limiter<S>, change: Change<'_>, domain: &str, entries: &[Entry<'_>]) {
    let rules = limiter.rules();
    let caller = Caller {
        domain,
        rule: rule_of(&rules, domain, entries),
        entries,
    };
    audit::of_caller(change, caller);
}

/// The rule that a descriptor ends at. `None` only if a reload has just taken it away.
fn rule_of<'a>(rules: &'a RuleSet, domain: &str, entries: &[Entry<'_>]) -> Option<&'a str> {
    let rule = rules.domain(domain)?.find(entries)?;
    Some(rule.path())
}

fn standings(verdict: &Verdict) -> Vec<StandingView<'_>> {
    let mut standings = Vec::new();
    for status in verdict.limits() {
        let Origin::Rule { limit, .. } = status.origin() else {
            continue;
        };
        let decision = match status.ruling() {
            Ruling::Decided(decision) => Some(decision),
            _ => None,
        };
        standings.push(StandingView {
            limit: limit.into(),
            remaining: decision.map(|decision| decision.remaining),
            reset_after_seconds: decision.map(|decision| decision.reset_after.as_secs_f64()),
        });
    }
    standings
}

// === impl BanBody ===

impl BanBody {
    fn term(&self) -> Result<BanTerm, Fault> {
        match (self.for_seconds, self.until_lifted) {
            (Some(seconds @ 1..=LONGEST_BAN), false) => {
                Ok(BanTerm::For(Duration::from_secs(seconds)))
            }
            (None, true) => Ok(BanTerm::UntilLifted),
            (Some(_), false) => Err(Fault::BadField(
                "`for_seconds` is from 1 to 315360000, ten years; write `until_lifted: true` for more",
            )),
            (Some(_), true) | (None, false) => Err(Fault::BadField(
                "say how long: either `for_seconds`, or `until_lifted: true`",
            )),
        }
    }
}
