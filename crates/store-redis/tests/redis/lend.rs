//! Loans: what is drawn is charged, what is given back is there again, and never more.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Meter, Outcome, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, Draw, Lender, LimitId, Loan, Mode,
    OnFull, Store,
};

use crate::subject::Single;

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);
const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
const ANN: CounterKey<'_> = CounterKey {
    limit: LimitId(1),
    values: &["ann"],
};

/// Each algorithm that lends.
const LENDERS: [Algorithm; 6] = [
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    },
    Algorithm::FixedWindow,
    Algorithm::SlidingLog { log_refused: false },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 12,
        rounding: Rounding::Down,
    },
];

/// A store and 100 a minute.
struct Bank {
    subject: Single,
    quota: Quota,
}

impl Bank {
    fn new(algorithm: Algorithm) -> Self {
        let spec = QuotaSpec {
            limit: 100,
            window: MINUTE,
            algorithm,
            allowance: Allowance::Hard,
        };
        Self {
            subject: Single::new(START),
            quota: Quota::new(&spec).expect("valid"),
        }
    }

    fn at(&self, since: Duration) {
        self.subject.set_time(START.plus(since));
    }

    fn draw(&self, least: u64, most: u64, one_in: u32) -> Loan {
        let draw = Draw {
            least,
            most,
            one_in,
            reserve: 0,
            life: SECOND,
        };
        let answer = self.subject.store().draw(ANN, &self.quota, draw);
        self.subject.wait(answer).expect("a loan")
    }

    /// Gives permits back, and returns how many were taken.
    fn give_back(&self, loan: &Loan, permits: u64) -> u64 {
        let store = self.subject.store();
        let answer = store.give_back(ANN, &self.quota, loan, permits);
        self.subject.wait(answer).expect("taken back")
    }

    fn remaining(&self) -> u64 {
        let store = self.subject.store();
        let look = Charge::look(ANN, &self.quota, Consistency::Leased);
        self.subject
            .wait(store.peek(&look))
            .expect("a decision")
            .remaining
    }

    fn take(&self, cost: u64) -> bool {
        let charges = [Charge {
            key: ANN,
            quota: &self.quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Deny,
            consistency: Consistency::Leased,
        }];
        let mut decisions = Decisions::new();
        let store = self.subject.store();
        let answer = store.charge(&charges, Charging::AllOrNone, &mut decisions);
        self.subject.wait(answer).expect("a decision");
        decisions[0].is_allowed()
    }
}

fn banks() -> impl Iterator<Item = Bank> {
    LENDERS.into_iter().map(Bank::new)
}

#[test]
fn a_loan_takes_its_part_of_what_is_left() {
    for bank in banks() {
        let permits = [(1, 50, 2), (1, 50, 2), (1, 3, 2), (0, 50, 1), (1, 50, 2)]
            .map(|(least, most, one_in)| bank.draw(least, most, one_in).permits);
        // 1 and half of the other 99, but no more than 50; 1 and half of 49; 3; all that is left; none. A
        // bucket tries 50, and then half as much each time.
        let expected = match bank.quota.meter() {
            Meter::TokenBucket(_) => [50, 25, 3, 12, 4],
            _ => [50, 25, 3, 22, 0],
        };
        assert_eq!(permits, expected, "{:?}", bank.quota);
        assert_eq!(bank.remaining(), 100 - permits.iter().sum::<u64>());
    }
}

#[test]
fn a_refused_draw_says_when_to_come_again() {
    for bank in banks() {
        assert!(bank.take(60));
        let loan = bank.draw(41, 80, 2);
        assert_eq!(loan.permits, 0, "{:?}", bank.quota);
        assert!(matches!(loan.decision.outcome, Outcome::Denied { .. }));
        assert_eq!(bank.remaining(), 40, "nothing was charged");
    }
}

#[test]
fn a_loan_says_what_is_left_to_others() {
    for bank in banks() {
        let loan = bank.draw(1, 10, 2);
        assert_eq!((loan.permits, loan.decision.remaining), (10, 90));
        assert_eq!(bank.remaining(), 90, "{:?}", bank.quota);
    }
}

#[test]
fn what_is_given_back_is_there_again() {
    for bank in banks() {
        let loan = bank.draw(1, 50, 1);
        bank.at(SECOND / 2);
        assert!(bank.take(20));
        bank.give_back(&loan, 30);
        // A bucket has gained less than one in half a second.
        assert_eq!(bank.remaining(), 60, "{:?}", bank.quota);
        // Whole ones of what was still missing.
        let taken = match bank.quota.meter() {
            Meter::TokenBucket(_) => 19,
            _ => 20,
        };
        assert_eq!(bank.give_back(&loan, 20), taken, "{:?}", bank.quota);
        assert_eq!(bank.remaining(), 80, "{:?}", bank.quota);
    }
}

#[test]
fn a_loan_long_forgotten_gives_nothing_back() {
    for bank in banks() {
        let loan = bank.draw(1, 50, 1);
        bank.at(MINUTE * 3);
        assert!(bank.take(60));
        assert_eq!(bank.give_back(&loan, 50), 0, "{:?}", bank.quota);
        assert_eq!(bank.remaining(), 40, "{:?}", bank.quota);
    }
}

/// Without the loan the bucket would have been full all the time, and have lost what dripped in: that is
/// not given back on top.
#[test]
fn a_bucket_takes_nothing_back_that_it_has_refilled() {
    let bank = Bank::new(LENDERS[0]);
    let loan = bank.draw(1, 50, 1);
    bank.at(Duration::from_millis(900));
    assert!(bank.take(51), "one and a half has dripped in");
    bank.give_back(&loan, 50);
    assert_eq!(bank.remaining(), 49, "100 in all");
}

/// A loan that has ended is still given back, while the note of other refunds is kept.
#[test]
fn a_bucket_takes_a_loan_back_for_an_eighth_of_its_window() {
    let bank = Bank::new(LENDERS[0]);
    let [first, second] = [bank.draw(1, 25, 1), bank.draw(1, 25, 1)];
    bank.at(Duration::from_millis(7_400));
    assert_eq!(bank.give_back(&first, 25), 12, "12 have dripped in");
    bank.at(Duration::from_millis(7_500));
    assert_eq!(bank.give_back(&second, 25), 0);
}

/// Half-way through a minute that began before the loan did: the counts of a window are given back to it even
/// when it is the one before.
#[test]
fn a_loan_is_given_back_to_the_window_it_was_drawn_in() {
    for algorithm in [LENDERS[4], LENDERS[5]] {
        let bank = Bank::new(algorithm);
        bank.at(Duration::from_secs(59));
        let loan = bank.draw(1, 50, 1);
        bank.at(MINUTE);
        assert!(bank.take(30));
        bank.give_back(&loan, 50);
        assert_eq!(bank.remaining(), 70, "{algorithm:?}");
    }
}

#[test]
fn permits_of_a_log_are_remembered_as_of_their_end() {
    let bank = Bank::new(LENDERS[3]);
    let loan = bank.draw(1, 100, 1);
    assert_eq!(loan.ends, START.plus(SECOND));
    bank.at(Duration::from_micros(60_999_999));
    assert_eq!(
        bank.remaining(),
        0,
        "spent at the end, they are still in the window"
    );
    bank.at(MINUTE + SECOND);
    assert_eq!(bank.remaining(), 100);
}

/// Of two loans each gives back its own, and what is charged meanwhile stays.
#[test]
fn loans_of_a_log_do_not_mix() {
    let bank = Bank::new(LENDERS[3]);
    let first = bank.draw(1, 10, 1);
    bank.at(SECOND / 4);
    let second = bank.draw(1, 20, 1);
    assert!(bank.take(5), "at the time of the newest");
    bank.give_back(&first, 10);
    assert_eq!(bank.remaining(), 75);
    bank.at(MINUTE + SECOND);
    assert_eq!(bank.remaining(), 75, "the second and the charge are left");
    bank.at(MINUTE + SECOND);
    bank.give_back(&second, 20);
    assert_eq!(bank.remaining(), 95);
    bank.at(MINUTE + SECOND + SECOND / 4);
    assert_eq!(bank.remaining(), 100);
}

#[test]
fn loans_end_where_their_window_does() {
    for (algorithm, ends) in [
        (LENDERS[0], Duration::from_millis(60_500)),
        (LENDERS[1], MINUTE),
        (LENDERS[2], MINUTE),
        (LENDERS[3], Duration::from_millis(60_500)),
        (LENDERS[4], MINUTE),
        (LENDERS[5], MINUTE),
    ] {
        let bank = Bank::new(algorithm);
        bank.at(Duration::from_millis(59_500));
        assert_eq!(bank.draw(1, 10, 2).ends, START.plus(ends), "{algorithm:?}");
    }
    let bank = Bank::new(LENDERS[5]);
    bank.at(Duration::from_millis(4_900));
    let ends = START.plus(Duration::from_secs(5));
    assert_eq!(bank.draw(1, 10, 2).ends, ends, "a sub-window");
}

/// A queue does not lend: what is asked for is charged, to be spent at once.
#[test]
fn a_queue_lends_nothing() {
    let bank = Bank::new(Algorithm::LeakyBucket { queue: None });
    let loan = bank.draw(1, 50, 1);
    assert_eq!((loan.permits, loan.ends), (1, loan.now));
}
