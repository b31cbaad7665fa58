//! Every interleaving, within bounds, of two threads on a store of two sets with two slots each.
//!
//! A model is run again and again with another order of the atomic steps, so it is kept small, and
//! what it begins with is made before the threads start. Time stands still, and the fingerprints
//! have a fixed key: a model must do the same thing each time.

use std::time::Duration;

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Time};

use super::EmbeddedStore;
use super::arena::test_util::TestArena;
use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::grow::Growth;
use super::layout::{Layout, Layouts, SPARE, Shape};
use super::recycle::LimitReservation;
use super::table::{Home, SET_BYTES};
use crate::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, LimitId, Mode,
    OldCounters, OnFull, StoreError,
};

/// Bytes of two sets: the table as it begins.
const TWO_SETS: usize = 64;
/// Bytes of four sets: the table may grow once.
const FOUR_SETS: usize = 128;

/// A word without a lock bit, as that of a set that is free. As a time it is whole steps.
const PATTERN: u64 = 0x5555_5555_5555_5540;

const NOW: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// How often a thread may be interrupted in the larger models, whose interleavings are too many
/// without a bound. Loom's documentation says that two or three find most bugs.
const PREEMPTIONS: usize = 3;

type Shared = Arc<EmbeddedStore<Frozen>>;

/// A clock that stands still.
#[derive(Debug)]
struct Frozen;

// === impl Frozen ===

impl Clock for Frozen {
    fn now(&self) -> Time {
        NOW
    }
}

/// Two threads find no counter, make one, and charge it: one of them is refused.
#[test]
fn two_threads_never_admit_more_than_the_limit() {
    for algorithm in [Algorithm::FixedWindow, TOKEN_BUCKET, SLIDING_LOG] {
        bounded(move || {
            let store = store(TWO_SETS * 4);
            let admitted = race(&store, move |store, _| {
                charge(store, &[("a", 1, 1)], algorithm)
            });
            assert_eq!(count_admitted(admitted), 1);
        });
    }
}

/// The same for a counter that is there, by the short way.
#[test]
fn two_threads_share_a_counter_that_is_there() {
    for algorithm in [Algorithm::FixedWindow, TOKEN_BUCKET] {
        bounded(move || {
            let store = store(TWO_SETS);
            charge(&store, &[("a", 2, 1)], algorithm);
            let admitted = race(&store, move |store, _| {
                charge(store, &[("a", 2, 1)], algorithm)
            });
            assert_eq!(count_admitted(admitted), 1);
        });
    }
}

/// Two threads charge two counters in opposite order: neither waits for the other for ever, and
/// the one that comes second is refused by both.
#[test]
fn two_threads_charge_two_counters_in_opposite_order() {
    bounded(|| {
        let store = store(TWO_SETS);
        let [first, second] = [0, 1].map(|set| name_at(&store, set));
        for name in [first, second] {
            charge(&store, &[(name, 2, 1)], Algorithm::FixedWindow);
        }
        let admitted = race(&store, move |store, thread| {
            let mut names = [(first, 2, 1), (second, 2, 1)];
            if thread == 1 {
                names.reverse();
            }
            charge(store, &names, Algorithm::FixedWindow)
        });
        assert_eq!(count_admitted(admitted), 1);
        for name in [first, second] {
            assert_eq!(remaining(&store, name, 2), 0);
        }
    });
}

/// The table is full and may not grow. Two threads evict a counter each, one of them to bring a
/// counter back that may just have been evicted. The one in use stays.
#[test]
fn evicted_counters_come_back() {
    bounded(|| {
        let store = store(TWO_SETS);
        let names = ["a", "b", "c", "refused"];
        for name in names {
            charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        }
        charge(&store, &[("refused", 3, 3)], Algorithm::FixedWindow);
        let admitted = race(&store, |store, thread| {
            let name = ["new", "a"][thread];
            charge(store, &[(name, 3, 1)], Algorithm::FixedWindow)
        });
        assert_eq!(count_admitted(admitted), 2);
        assert_eq!(remaining(&store, "refused", 3), 2, "the refused one stays");
        assert_eq!(tags(&store.core), 4);
    });
}

/// The table is full of counters in use. Two threads without room charge one shared counter: one is denied. A third
/// counter that both evict from there is not counted twice.
#[test]
fn two_threads_share_a_counter_without_room() {
    for algorithm in [Algorithm::FixedWindow, SLIDING_LOG] {
        bounded(move || {
            let store = full_store();
            let admitted = race(&store, move |store, _| {
                charge_or_share(store, &[("new", 1, 1)], algorithm)
            });
            assert_eq!(count_admitted(admitted), 1);
            assert_eq!(tags(&store.core), 4);
        });
    }
}

/// One thread evicts a counter, which is folded into a shared one, while the other charges that: at worst the fold is
/// skipped and counted, and no count is lost that was made there.
#[test]
fn a_fold_meets_a_charge() {
    bounded(|| {
        let store = full_store();
        let admitted = race(&store, move |store, thread| {
            if thread == 0 {
                charge_or_share(store, &[("new", 1, 1)], Algorithm::FixedWindow)
            } else {
                let tag = store.core.layouts.search(windows(1)).map(|number| {
                    let hash = store.fingerprinter.hash(key(&["new"]));
                    super::tag::Tag::new(hash, number)
                });
                let word = NOW.nanos() / 60_000_000_000;
                let layout = windows(1);
                let state = word << (64 - layout.index_bits()) | 1;
                store.core.fold(tag.expect("a number"), state, NOW);
                Admission::Admitted
            }
        });
        let unfolded = store.stats().unfolded;
        let again = charge_or_share(&store, &[("new", 1, 1)], Algorithm::FixedWindow);
        // Charged or folded, somebody was counted.
        assert_eq!(
            again,
            Admission::Refused,
            "{admitted:?}, {unfolded} unfolded"
        );
    });
}

/// One thread makes the table grow while the other charges a counter that thereby moves.
#[test]
fn a_counter_is_found_while_the_table_grows() {
    bounded(|| {
        let store = store(FOUR_SETS);
        let names = ["a", "b", "c", "d"];
        for name in names {
            charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        }
        assert_eq!(store.core.table.size(0), 2);
        let admitted = race(&store, |store, thread| {
            let name = ["new", "a"][thread];
            charge(store, &[(name, 3, 1)], Algorithm::FixedWindow)
        });
        assert_eq!(count_admitted(admitted), 2);
        assert_eq!(store.core.table.size(0), 4);
        assert_eq!(remaining(&store, "a", 3), 1);
        for name in ["b", "c", "d", "new"] {
            assert_eq!(remaining(&store, name, 3), 2, "{name}");
        }
        assert_eq!(tags(&store.core), 5);
    });
}

/// Two threads want to grow the same shard: both find room, and what it has grown by is paid for
/// once.
#[test]
fn a_shard_grows_for_two_threads() {
    // Each thread may hold all sets, and wait for all: with three interruptions it takes minutes.
    interrupted(2, || {
        // Not at the cap, where counters are evicted instead.
        let store = store(2 * FOUR_SETS);
        for name in ["a", "b", "c", "d"] {
            charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        }
        let admitted = race(&store, |store, thread| {
            charge(store, &[(["e", "f"][thread], 3, 1)], Algorithm::FixedWindow)
        });
        assert_eq!(count_admitted(admitted), 2);
        assert_eq!(tags(&store.core), 6);
        let sets = u64::from(store.core.table.size(0));
        assert_eq!(store.stats().used_bytes, sets * SET_BYTES as u64);
        assert_eq!(store.stats().evicted, 0);
    });
}

/// One thread moves a counter to its other set, to make room, while the other thread charges it.
#[test]
fn a_counter_is_found_while_it_moves() {
    bounded(|| {
        // Not at the cap, where counters are evicted instead.
        let store = store(2 * FOUR_SETS);
        assert_eq!(store.core.grow(0, 2, NOW), Growth::Changed);
        // Sets 0 and 1 are full; the first counter may go to set 2; the new one may lie in 0 or 1.
        let names = |wanted: fn(&Home) -> bool| {
            NAMES
                .iter()
                .copied()
                .filter(|name| wanted(&home(&store, name)))
                .collect::<Vec<_>>()
        };
        let moving = names(|home| (home.primary.set, home.secondary.set) == (0, 2))[0];
        let new = names(|home| (home.primary.set, home.secondary.set) == (0, 1))[0];
        let in_first = names(|home| home.primary.set == 0);
        let in_second = names(|home| home.primary.set == 1);
        let beside = in_first
            .into_iter()
            .find(|name| ![moving, new].contains(name));
        let others = [beside.expect("a third"), in_second[0], in_second[1]];
        for name in [moving].iter().chain(&others) {
            charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        }
        let admitted = race(&store, move |store, thread| {
            charge(
                store,
                &[([new, moving][thread], 3, 1)],
                Algorithm::FixedWindow,
            )
        });
        assert_eq!(count_admitted(admitted), 2);
        assert_eq!(store.core.table.size(0), 4);
        assert_eq!(remaining(&store, moving, 3), 1);
        for name in others.iter().chain(&[new]) {
            assert_eq!(remaining(&store, name, 3), 2);
        }
        assert_eq!(tags(&store.core), 5);
    });
}

/// One thread makes the table smaller and fills blocks where sets were, while the other charges a counter that lay in
/// one of them: the counter keeps its count, and the blocks what was written to them.
#[test]
fn a_set_becomes_a_block() {
    interrupted(2, || {
        let store = store(2 * FOUR_SETS);
        assert_eq!(store.core.grow(0, 2, NOW), Growth::Changed);
        let name = name_at(&store, 3);
        charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        while store.core.arena().allocate(2).is_some() {}
        let full = race(&store, move |store, thread| {
            if thread == 1 {
                charge(store, &[(name, 3, 1)], Algorithm::FixedWindow);
                return Vec::new();
            }
            let core = &store.core;
            // It is not waited for the other thread, so it may be too busy to be made smaller.
            core.shrink_table(&mut None, NOW);
            let handles = (0..2).map_while(|_| core.arena().allocate(2));
            let handles: Vec<_> = handles.collect();
            for handle in &handles {
                let block = core.arena().block(*handle);
                (0..block.len()).for_each(|index| block.put(index, PATTERN));
            }
            handles
        });
        for handle in &full[0] {
            let block = store.core.arena().block(*handle);
            assert!((0..block.len()).all(|index| block.get(index) == PATTERN));
        }
        let sets = if full[0].is_empty() { 4 } else { 2 };
        assert_eq!(store.core.table.size(0), sets);
        assert_eq!(remaining(&store, name, 3), 1);
        assert_eq!(tags(&store.core), 1);
    });
}

/// Two threads take blocks from the arena and give them back: no block belongs to both.
#[test]
fn blocks_have_one_owner() {
    loom::model(|| {
        let shared = Arc::new(TestArena::new(64));
        let mut threads = Vec::new();
        for value in [1, 2] {
            let shared = Arc::clone(&shared);
            threads.push(thread::spawn(move || {
                let arena = shared.arena();
                let handle = arena.allocate(2).expect("room for two");
                let block = arena.block(handle);
                assert_eq!([block.get(0), block.get(1)], [0, 0]);
                block.put(1, value);
                assert_eq!(block.get(1), value);
                arena.free(handle);
            }));
        }
        threads.into_iter().for_each(|it| it.join().expect("well"));
        let arena = shared.arena();
        let handles = [(); 2].map(|()| arena.allocate(2).expect("both are free"));
        assert_ne!(handles[0], handles[1]);
        assert_eq!(arena.allocate(2), None);
    });
}

/// Two threads number the same two layouts, in opposite order: the numbers agree.
#[test]
fn a_layout_has_one_number() {
    loom::model(|| {
        let layouts = Arc::new(Layouts::new());
        let seen = [false, true].map(|is_reversed| {
            let layouts = Arc::clone(&layouts);
            thread::spawn(move || {
                let mut order = [Algorithm::FixedWindow, TOKEN_BUCKET];
                if is_reversed {
                    order.reverse();
                }
                let mut numbers = order.map(|algorithm| {
                    let layout = Layout::of(&quota(1, algorithm));
                    let number = layouts.search(layout);
                    let number = number.or_else(|| layouts.assignment().number(layout));
                    number.expect("room for two").get()
                });
                if is_reversed {
                    numbers.reverse();
                }
                numbers
            })
        });
        let [one, other] = seen.map(|thread| thread.join().expect("well"));
        assert_eq!(one, other);
        assert_ne!(one[0], one[1]);
    });
}

/// One thread charges a counter of a layout that no counter uses, while the other needs its number for
/// another layout. Either the counter is there and keeps the number, or the other layout has it and the
/// counter is a bucket with the spare number.
#[test]
fn a_number_is_not_recycled_under_a_charge() {
    interrupted(2, || {
        let store = store(TWO_SETS);
        for minutes in 1..3 {
            reserve(&store, &[minutes]).expect("room for two");
        }
        let [admitted, _] = race(&store, |store, thread| {
            if thread == 0 {
                charge(store, &[("a", 2, 1)], Algorithm::FixedWindow)
            } else {
                // Refused if the counter was there before.
                drop(reserve(store, &[2, 3]));
                Admission::Admitted
            }
        });
        let layouts = &store.core.layouts;
        let expected = layouts.search(windows(1)).map_or(SPARE, |_| windows(1));
        store.core.visit(0, |tag, _| {
            assert_eq!(layouts.get(tag.layout()), Some(expected));
        });
        assert_eq!(tags(&store.core), 1);
        assert_eq!(admitted, Admission::Admitted);
    });
}

/// Makes sure that fixed windows of so many minutes each can be counted.
fn reserve(store: &EmbeddedStore<Frozen>, minutes: &[u64]) -> Result<(), StoreError> {
    let quotas: Vec<_> = minutes
        .iter()
        .map(|&minutes| {
            Quota::new(&QuotaSpec {
                limit: 2,
                window: Duration::from_mins(minutes),
                algorithm: Algorithm::FixedWindow,
                allowance: Allowance::Hard,
            })
            .expect("valid")
        })
        .collect();
    let reserved = store.core.reserve(quotas.iter(), OldCounters::Keep, NOW);
    reserved.map(LimitReservation::commit)
}

/// The layout of a fixed window of so many minutes.
fn windows(minutes: u64) -> Layout {
    let window = minutes * 60_000_000_000;
    Layout {
        shape: Shape::Window,
        window,
    }
}

const TOKEN_BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

const SLIDING_LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

/// Checks a model with the usual bound on interruptions.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    interrupted(PREEMPTIONS, model);
}

/// Checks a model in which a thread is interrupted so often at most.
fn interrupted(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

fn store(max_memory: usize) -> Shared {
    store_of(Core::try_new(max_memory).expect("a little memory"))
}

fn store_of(core: Core) -> Shared {
    Arc::new(EmbeddedStore {
        core,
        fingerprinter: Fingerprinter::with_secret([1, 2]),
        clock: Frozen,
        #[cfg(feature = "test-util")]
        notes: super::lend::Notes::default(),
    })
}

/// A store of two sets, full of counters in use, with shared counters.
fn full_store() -> Shared {
    let mut core = Core::try_new(TWO_SETS).expect("a little memory");
    core.share(TWO_SETS).expect("a little memory");
    let store = store_of(core);
    for name in ["a", "b", "c", "d"] {
        for _ in 0..2 {
            charge(&store, &[(name, 3, 1)], Algorithm::FixedWindow);
        }
    }
    store
}

/// Runs `work` on two threads and gives what they say.
fn race<T: 'static>(
    store: &Shared,
    work: impl Fn(&EmbeddedStore<Frozen>, usize) -> T + Copy + Send + 'static,
) -> [T; 2] {
    let threads = [0, 1].map(|index| {
        let store = Arc::clone(store);
        thread::spawn(move || work(&store, index))
    });
    threads.map(|thread| thread.join().expect("well"))
}

/// Charges counters, each by name, limit and cost, all or none. One without room is denied.
fn charge(
    store: &EmbeddedStore<Frozen>,
    counters: &[(&str, u64, u64)],
    algorithm: Algorithm,
) -> Admission {
    charge_as(store, counters, algorithm, OnFull::Deny)
}

/// The same, but one without room is charged to a shared counter.
fn charge_or_share(
    store: &EmbeddedStore<Frozen>,
    counters: &[(&str, u64, u64)],
    algorithm: Algorithm,
) -> Admission {
    charge_as(store, counters, algorithm, OnFull::Shared)
}

fn charge_as(
    store: &EmbeddedStore<Frozen>,
    counters: &[(&str, u64, u64)],
    algorithm: Algorithm,
    on_full: OnFull,
) -> Admission {
    let counters: Vec<_> = counters
        .iter()
        .map(|&(name, limit, cost)| ([name], quota(limit, algorithm), cost))
        .collect();
    let charges: Vec<_> = counters
        .iter()
        .map(|(values, quota, cost)| Charge {
            key: CounterKey {
                limit: LimitId(1),
                values,
            },
            quota,
            cost: *cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full,
            consistency: Consistency::Strict,
        })
        .collect();
    let mut decisions = Decisions::new();
    let receipt = store.charge_now(&charges, Charging::AllOrNone, &mut decisions);
    receipt.expect("a decision").admission
}

fn remaining(store: &EmbeddedStore<Frozen>, name: &str, limit: u64) -> u64 {
    let quota = quota(limit, Algorithm::FixedWindow);
    let decision = store.peek_now(&Charge::look(key(&[name]), &quota, Consistency::Strict));
    decision.expect("a decision").remaining
}

fn count_admitted(admissions: [Admission; 2]) -> usize {
    let admitted = |it: &&Admission| **it == Admission::Admitted;
    admissions.iter().filter(admitted).count()
}

/// How many counters there are; fails if one is there twice.
fn tags(core: &Core) -> usize {
    let mut tags = Vec::new();
    core.visit(0, |tag, _| tags.push(tag.unmarked().word()));
    let all = tags.len();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), all, "a counter is there twice");
    all
}

fn quota(limit: u64, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_mins(1),
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

fn key<'a>(values: &'a [&'a str]) -> CounterKey<'a> {
    CounterKey {
        limit: LimitId(1),
        values,
    }
}

/// A name whose primary set is that one.
fn name_at(store: &EmbeddedStore<Frozen>, primary: u32) -> &'static str {
    let mut names = NAMES.into_iter();
    names
        .find(|name| home(store, name).primary.set == primary)
        .expect("a name for each set")
}

fn home(store: &EmbeddedStore<Frozen>, name: &str) -> Home {
    let hash = store.fingerprinter.hash(key(&[name]));
    store.core.table.home(hash)
}

/// Enough names that there are some for each pair of sets.
const NAMES: [&str; 64] = {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let mut names = [""; 64];
    let (mut rest, mut n) = (LETTERS, 0);
    while n < 64 {
        let (name, after) = rest.split_at(1);
        names[n] = name;
        rest = after;
        n += 1;
    }
    names
};
