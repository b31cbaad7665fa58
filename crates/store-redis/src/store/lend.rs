//! Lending: permits charged ahead of need.

use std::time::Duration;

use tidegate_algorithms::{Decision, Headroom, Meter, Quota, Time};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Draw, GivenBack, Lender, Loan, Mode, OnFull,
    StoreError, lendable,
};

use super::RedisStore;
use super::ask::told_time;
use super::single::split;
use crate::client::{Reply, Script, Unclaimed};
use crate::counter::{Account, Numbers, Told, drawn, lendings, loaned, numbers, refunded};
use crate::fit::fits;
use crate::script::Kind;

/// A loan of a bucket lives for one in so many of its window at the longest: the note of what was given back is
/// kept for longer (`scripts/lend/note.lua`).
const BUCKET_LIVES: u32 = 16;

impl Lender for RedisStore {
    async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        fits(quota).map_err(|reason| StoreError::Unfit { reason })?;
        let (headroom, charging) = (Headroom::Absent, Charging::AllOrNone);
        let numbers = numbers(quota, draw.least, headroom, charging);
        // Of a limit that cannot be lent, what the request at hand needs is charged, and no more.
        let most = if lendable(quota) {
            draw.most
        } else {
            draw.least
        };
        let draw = Draw { most, ..draw };
        let words = [numbers, drawn(&draw), lendings(quota, &draw)];
        let script = self.scripts.draw(Kind::of(quota));
        let missed = self.when_missed(key, quota, draw);
        let reply = self.about_loan(key, quota, script, &words, Some(&missed));
        self.read_loan(key, quota, draw, &reply.await?)
    }

    async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        let script = self.scripts.give_back(Kind::of(quota));
        let permits = permits.min(loan.permits);
        let words = [refunded(quota, permits), loaned(quota, loan, permits)];
        let reply = self.about_loan(key, quota, script, &words, None).await?;
        let text = reply.text()?.and_then(|text| str::from_utf8(text).ok());
        let taken = text.and_then(|text| text.rsplit_once(' ')?.1.parse().ok());
        taken.ok_or_else(|| reply.unexpected())
    }
}

// === impl RedisStore ===

impl RedisStore {
    /// Runs a script on one counter and, of a bucket, its note.
    pub(super) async fn about_loan(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        script: &Script,
        numbers: &[Numbers],
        unclaimed: Option<&Unclaimed>,
    ) -> Result<Reply, StoreError> {
        let counter = self.key(key, quota);
        if Kind::of(quota) == Kind::Bucket {
            let note = counter.note();
            let keys = [counter, note];
            self.run_on(keys, script, numbers, unclaimed).await
        } else {
            self.run_on([counter], script, numbers, unclaimed).await
        }
    }

    pub(super) fn read_loan(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
        reply: &Reply,
    ) -> Result<Loan, StoreError> {
        let mut parts = reply.array()?;
        let first = parts.next().and_then(|value| value.text());
        let (word, now, state) = split(first).ok_or_else(|| reply.unexpected())?;
        let now = told_time(reply, Some(now))?;
        let drawn = parts.next().and_then(|value| value.str()?.parse().ok());
        let drawn: u64 = drawn.ok_or_else(|| reply.unexpected())?;
        let permits = match quota.meter() {
            Meter::TokenBucket(_) | Meter::LeakyBucket(_) if drawn > 0 => drawn,
            _ => draw.least.saturating_add(drawn),
        };
        let given_back = parts.next().and_then(|value| value.str()?.parse().ok());
        let given_back = GivenBack(given_back.ok_or_else(|| reply.unexpected())?);
        let told = Told::read(state, quota).ok_or_else(|| reply.unexpected())?;
        let mut decision = said(told, key, quota, permits, now);
        self.heed(&mut decision, word);
        let (permits, ends) = if decision.is_allowed() {
            (permits, ends(quota, draw.life, now))
        } else {
            (0, now)
        };
        Ok(Loan {
            now,
            permits,
            ends,
            decision,
            given_back,
        })
    }
}

/// What the limit says to so many permits.
fn said(told: Told, key: CounterKey<'_>, quota: &Quota, permits: u64, now: Time) -> Decision {
    let charge = Charge {
        key,
        quota,
        cost: permits,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Strict,
    };
    Account::new(told).judge(&charge, Charging::AllOrNone, now)
}

/// When permits that were drawn at `now` must be spent: where they are counted by the window, before it ends.
fn ends(quota: &Quota, life: Duration, now: Time) -> Time {
    if !lendable(quota) {
        return now;
    }
    let end = now.plus(life);
    let edge = |window: Duration| {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
        let next = (now.nanos() / window).saturating_add(1);
        Time::from_nanos(next.saturating_mul(window)).min(end)
    };
    match quota.meter() {
        Meter::TokenBucket(_) => now.plus(life.min(quota.window() / BUCKET_LIVES)),
        Meter::LeakyBucket(_) | Meter::SlidingLog(_) => end,
        Meter::IntervalBucket(_) | Meter::FixedWindow(_) | Meter::SlidingCounter(_) => {
            edge(quota.window())
        }
        Meter::SubWindows(meter) => edge(meter.sub_window()),
    }
}
