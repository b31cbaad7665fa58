//! What an answer says besides yes and no is true.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Quota, QuotaSpec, RefundTo, Retry, Standing,
    Time,
};

use crate::history::{self, Act, Course, Step, cases, spec, start, steps};

const NANO: Duration = Duration::from_nanos(1);

/// A nanosecond before `wait` is over.
fn just_before(now: Time, wait: Duration) -> Time {
    Time::from_nanos(now.plus(wait).nanos() - 1)
}

/// A counter with a history behind it.
struct Used {
    counter: Counter,
    now: Time,
    headroom: Headroom,
    /// The last request, and what was said of it.
    last: Option<(u64, Decision)>,
}

impl Used {
    fn after(spec: &QuotaSpec, start: u64, steps: &[Step]) -> Self {
        let quota = Quota::new(spec).expect("valid");
        let mut course = Course::new(&quota, start);
        let mut used = Self {
            counter: Counter::new(quota),
            now: course.now,
            headroom: Headroom::Absent,
            last: None,
        };
        for step in steps {
            course.advance(&step.advance);
            used.now = course.now;
            match &step.act {
                Act::Refund { cost, charge } => {
                    used.last = None;
                    let (cost, to) = (course.cost(cost), course.refund_to(*charge));
                    used.counter.refund(cost, to, used.now);
                }
                Act::Request { cost, headroom, .. } => {
                    let cost = course.cost(cost);
                    used.headroom = *headroom;
                    let decision = used.ask(cost, used.now);
                    course.learn(decision);
                    used.last = Some((cost, decision));
                }
            }
        }
        used
    }

    fn ask(&mut self, cost: u64, at: Time) -> Decision {
        self.counter.decide(cost, self.headroom, at, Commit::Charge)
    }

    /// What would be said at `at`, if nothing came until then.
    fn would_say(&self, cost: u64, at: Time) -> Decision {
        self.counter
            .clone()
            .decide(cost, self.headroom, at, Commit::Nothing)
    }
}

fn is_within(decision: &Decision) -> bool {
    matches!(
        decision.outcome,
        Outcome::Allowed {
            standing: Standing::Within,
            ..
        }
    )
}

fn is_fixed_window(spec: &QuotaSpec) -> bool {
    spec.algorithm == Algorithm::FixedWindow
}

fn logs_refused(spec: &QuotaSpec) -> bool {
    spec.algorithm == Algorithm::SlidingLog { log_refused: true }
}

fn is_postpaid(spec: &QuotaSpec) -> bool {
    Quota::new(spec).is_ok_and(|quota| quota.is_postpaid())
}

fn tracks_soft_period(spec: &QuotaSpec) -> bool {
    Quota::new(spec).is_ok_and(|quota| quota.tracks_soft_period())
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// A lone caller who waits as long as told is admitted; one who comes a nanosecond earlier is
    /// not; one who is told `never` is not admitted however long it waits.
    #[test]
    fn the_retry_is_exact(spec in spec(), start in start(), steps in steps()) {
        let used = Used::after(&spec, start, &steps);
        let Some((cost, Decision { outcome: Outcome::Denied { retry }, .. })) = used.last else {
            return Ok(());
        };
        // A postpaid limit says when a cost of 1 fits.
        let cost = if is_postpaid(&spec) { 1 } else { cost };
        match retry {
            Retry::After(wait) => {
                prop_assert!(wait > Duration::ZERO);
                let at = used.now.plus(wait);
                prop_assume!(at < Time::MAX);
                prop_assert!(used.would_say(cost, at).is_allowed(), "refused at the retry");
                // There the wait may be longer by the grain of the log.
                prop_assume!(!(logs_refused(&spec) && tracks_soft_period(&spec)));
                let early = just_before(used.now, wait);
                prop_assert!(!used.would_say(cost, early).is_allowed(), "admitted too early");
            }
            Retry::Never => {
                for wait in [NANO, spec.window, spec.window * 3, Duration::from_hours(200_000)] {
                    prop_assert!(!used.would_say(cost, used.now.plus(wait)).is_allowed());
                }
            }
        }
    }

    /// Exactly as many requests of cost 1 as remain are then admitted within the limit.
    #[test]
    fn what_remains_never_lies(spec in spec(), start in start(), steps in steps()) {
        let mut used = Used::after(&spec, start, &steps);
        let Some((_, decision)) = used.last else { return Ok(()) };
        let now = used.now;
        if decision.remaining > 60 {
            let most = decision.remaining - 60;
            prop_assert!(is_within(&used.ask(most, now)));
        }
        for _ in 0..decision.remaining.min(60) {
            prop_assert!(is_within(&used.ask(1, now)));
        }
        prop_assert!(!is_within(&used.ask(1, now)));
    }

    /// The whole limit is there when the answer said it would be, and not a nanosecond earlier,
    /// a fixed window aside, which is reset when it ends even if it was not used.
    #[test]
    fn the_reset_is_exact(spec in spec(), start in start(), steps in steps()) {
        let used = Used::after(&spec, start, &steps);
        let Some((_, Decision { reset_after, limit, .. })) = used.last else { return Ok(()) };
        let at = used.now.plus(reset_after);
        prop_assume!(at < Time::MAX);
        prop_assert_eq!(used.would_say(0, at).remaining, limit);
        if is_fixed_window(&spec) {
            prop_assert!(reset_after > Duration::ZERO);
        } else if reset_after > Duration::ZERO && limit > 0 {
            let early = used.would_say(0,just_before(used.now, reset_after));
            prop_assert!(early.remaining < limit);
        }
    }

    /// A refund takes back a charge: whatever is asked then or later, the answers are as if it had
    /// never been.
    #[test]
    fn a_refund_undoes_a_charge(
        spec in spec(), start in start(), steps in steps(), cost in history::cost(), later in 0..3_000_u32,
    ) {
        // Having been over the limit is remembered, refunded or not.
        let spec = QuotaSpec { allowance: Allowance::Hard, ..spec };
        let mut used = Used::after(&spec, start, &steps);
        let course = Course::new(used.counter.quota(), start);
        let cost = course.cost(&cost);
        let (now, then) = (used.now, used.now.plus(spec.window * later / 1_000));
        // A first look makes the clamp of a stepped clock last.
        used.ask(0, now);
        let before = [used.would_say(0, now), used.would_say(1, now), used.would_say(1, then)];
        if !used.ask(cost, now).is_allowed() {
            return Ok(());
        }
        used.counter.refund(cost, RefundTo::Current, now);
        let after = [used.would_say(0, now), used.would_say(1, now), used.would_say(1, then)];
        prop_assert_eq!(before, after);
    }

    /// A refund never makes more than the whole limit available.
    #[test]
    fn a_refund_never_adds(spec in spec(), start in start(), steps in steps(), cost: u64) {
        let mut used = Used::after(&spec, start, &steps);
        used.counter.refund(cost, RefundTo::Current, used.now);
        used.counter.refund(u64::MAX, RefundTo::Current, used.now);
        let new = Counter::new(used.counter.quota().clone());
        let whole = new.clone().decide(0, used.headroom, used.now, Commit::Nothing);
        let refunded = used.would_say(0, used.now);
        prop_assert_eq!(refunded.remaining, whole.remaining);
        prop_assert!(!is_within(&used.would_say(whole.limit + 1, used.now)));
    }

    /// Looking (cost 0) changes nothing, then or later.
    #[test]
    fn a_look_changes_nothing(
        spec in spec(), start in start(), steps in steps(), later in 0..3_000_u32,
    ) {
        // To keep a clamp, a request is denied below, which prolongs a period of soft admissions.
        prop_assume!(!(clamps(&spec) && tracks_soft_period(&spec)));
        let used = Used::after(&spec, start, &steps);
        let mut looked = used.counter.clone();
        let seen = looked.decide(0, used.headroom, used.now, Commit::Nothing);
        prop_assert_eq!(looked.decide(0, used.headroom, used.now, Commit::Charge), seen);
        let then = used.now.plus(spec.window * later / 1_000);
        for cost in [0, 1, 2, u64::MAX] {
            let answer = looked.clone().decide(cost, used.headroom, then, Commit::Nothing);
            // A look keeps a clamp, which an answer alone does not.
            let mut unlooked = used.counter.clone();
            if clamps(&spec) && !is_postpaid(&spec) {
                unlooked.decide(u64::MAX, used.headroom, used.now, Commit::Charge);
            }
            let expected = unlooked.decide(cost, used.headroom, then, Commit::Nothing);
            prop_assert_eq!(answer, expected);
        }
    }

    /// A refused request costs nothing: however often it comes, the others are answered alike. With
    /// `log_refused` it does cost, and so it does postpaid; with `soft_for` it delays the next soft admission.
    #[test]
    fn a_refusal_costs_nothing(
        spec in spec(), start in start(), steps in steps(), later in 0..3_000_u32,
    ) {
        let mut used = Used::after(&spec, start, &steps);
        let Some((cost, Decision { outcome: Outcome::Denied { .. }, .. })) = used.last else {
            return Ok(());
        };
        prop_assume!(!logs_refused(&spec) && !tracks_soft_period(&spec) && !is_postpaid(&spec));
        let then = used.now.plus(spec.window * later / 1_000);
        let before = [used.would_say(1, used.now), used.would_say(1, then)];
        for _ in 0..3 {
            prop_assert!(!used.ask(cost, used.now).is_allowed());
        }
        prop_assert_eq!(before, [used.would_say(1, used.now), used.would_say(1, then)]);
    }

    /// From the instant at which a counter expires it is as good as new, and not before.
    #[test]
    fn a_counter_expires_when_it_says(spec in spec(), start in start(), steps in steps()) {
        let used = Used::after(&spec, start, &steps);
        let at = used.counter.expires_at();
        prop_assume!(at < Time::MAX && spec.limit > 0);
        let new = Counter::new(used.counter.quota().clone());
        for late in [at.max(used.now), at.max(used.now).plus(spec.window)] {
            for cost in [0, 1, 7, spec.limit] {
                let as_new = new.clone().decide(cost, used.headroom, late, Commit::Nothing);
                prop_assert_eq!(used.would_say(cost, late), as_new);
            }
        }
        // A period of soft admissions may outlive the counts, and shows only above the limit.
        if at > used.now && !tracks_soft_period(&spec) {
            let early = Time::from_nanos(at.nanos() - 1);
            let as_new = new.clone().decide(0, used.headroom, early, Commit::Nothing);
            prop_assert_ne!(used.would_say(0, early), as_new);
        }
    }
}

/// Whether the algorithm clamps what a stepped clock left.
fn clamps(spec: &QuotaSpec) -> bool {
    matches!(
        spec.algorithm,
        Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. }
    )
}
