use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec, Refill, Rounding};

use super::*;
use crate::embedded::arena::test_util::TestArena;
use crate::embedded::ledger::expires_at;

fn layout() -> impl Strategy<Value = Layout> {
    let shape = prop::sample::select(vec![
        Shape::Instant,
        Shape::Window,
        Shape::Portion,
        Shape::Pair,
    ]);
    let window =
        (20..58_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits)));
    (shape, window).prop_map(|(shape, window)| Layout { shape, window })
}

/// A state of that shape whose fields are those numbers.
fn state(shape: Shape, [a, b, c]: [u64; 3]) -> State {
    match shape {
        Shape::Window => State::Window(fixed_window::State {
            window: a,
            count: b,
        }),
        Shape::Portion => State::Portion(interval_bucket::State {
            period: a,
            missing: b,
        }),
        Shape::Pair => State::Pair(sliding_counter::State {
            window: a,
            previous: b,
            current: c,
        }),
        Shape::Instant | Shape::Log | Shape::Counts => State::Instant(Ticks::from_nanos(a)),
    }
}

fn quota(limit: u64, window: u64, algorithm: Algorithm) -> Option<Quota> {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_nanos(window),
        algorithm,
        allowance: Allowance::Hard,
    })
    .ok()
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    let bucket = |refill| Algorithm::TokenBucket {
        burst: None,
        refill,
    };
    prop::sample::select(vec![
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::LeakyBucket { queue: None },
        Algorithm::FixedWindow,
        Algorithm::SlidingCounter {
            sub_windows: 1,
            rounding: Rounding::Down,
        },
    ])
}

proptest! {
    /// A word holds the index of any window there will be, and every count up to its field's end;
    /// a larger one is held there, which admits less.
    #[test]
    fn a_word_holds_what_fits_and_no_less(layout in layout(), now in 0..=1_u64 << 62, counts: [u64; 2]) {
        let index = match layout.shape {
            Shape::Instant => now,
            _ => now / layout.window,
        };
        let most = match layout.shape {
            Shape::Window => mask(64 - layout.index_bits()),
            Shape::Portion => mask(missing_bits(layout)),
            Shape::Pair => mask(pair_bits(layout)),
            Shape::Instant | Shape::Log | Shape::Counts => 0,
        };
        let before = state(layout.shape, [index, counts[0], counts[1]]);
        let held = state(layout.shape, [index, counts[0].min(most), counts[1].min(most)]);
        let word = before.to_narrow(layout, Time::from_nanos(now));
        prop_assert_eq!(State::from_narrow(word, layout), Some(held));
    }

    /// A block holds any state whole, and a period of soft admissions.
    #[test]
    fn a_block_holds_all(
        layout in layout(), fields: [u64; 3], ticks: u128, micros in 0..=1_u64 << 52, step in 0..1_024_u16,
    ) {
        let memory = TestArena::new(1 << 10);
        let arena = memory.arena();
        let block = arena.block(arena.allocate(WIDE_WORDS).expect("room"));
        let before = match layout.shape {
            Shape::Instant => State::Instant(Ticks(ticks)),
            shape => state(shape, fields),
        };
        before.write_wide(&block);
        prop_assert_eq!(soft_period(&block), None);
        let period = SoftPeriod::from_parts(micros, step);
        prop_assert!(period.is_some());
        put_soft_period(&block, period);
        prop_assert_eq!(State::read_wide(&block, layout.shape), Some(before));
        prop_assert_eq!(soft_period(&block), period);
        put_soft_period(&block, None);
        prop_assert_eq!(soft_period(&block), None);
    }

    /// A narrow state comes back whole from its word after any charge, and the word alone says when
    /// it expires: not before its limit does, and no more than a window later.
    #[test]
    fn a_word_says_when_it_expires(
        algorithm in algorithm(),
        limit in 1..1_000_000_u64,
        window in 1_000_000..100_000_000_000_000_u64,
        now in 0..1_u64 << 61,
        cost in 1..1_000_000_u64,
    ) {
        let Some(quota) = quota(limit, window, algorithm) else {
            return Ok(());
        };
        let layout = Layout::of(&quota);
        if !fits_narrow(&quota, layout) {
            return Ok(());
        }
        let unseen = State::unseen(layout.shape).expect("not a block");
        let cost = cost % limit + 1;
        let (_, charged) = unseen.decide(quota.meter(), cost, 0, Time::from_nanos(now));
        let expires = expires_at(&quota, charged);
        let word = charged.to_narrow(layout, expires);
        prop_assert_eq!(State::from_narrow(word, layout), Some(charged));
        let told = narrow_expires_at(word, layout);
        prop_assert!(told >= expires, "{:?} before {:?}", told, expires);
        prop_assert!(told <= expires.plus(quota.window()), "{:?} after {:?}", told, expires);
    }
}
