use tidegate_algorithms::fixed_window;

use super::*;
use crate::embedded::layout::{Layout, Shape};
use crate::embedded::state::State;
use crate::embedded::table::STEP_BYTES;

const MINUTE: u64 = 60_000_000_000;
const NOW: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Puts a counter of a fixed window into a slot, and gives its tag.
fn put(core: &Core, set: &LockedSet<'_>, slot: usize, window: u64) -> Tag {
    let shape = Shape::Window;
    let layout = Layout { shape, window };
    let number = core.layouts.try_number(layout).expect("a number");
    let tag = Tag::new(slot as u64, number);
    let state = State::Window(fixed_window::State {
        window: NOW.nanos() / window,
        count: 1,
    });
    set.put_state(slot, state.to_narrow(layout, Time::MAX));
    set.put_tag(slot, tag);
    tag
}

/// Among idle counters the one that is free soonest is evicted first; one that was requested lately goes after all of
/// them, and one that was requested again stays.
#[test]
fn the_idle_counter_that_is_free_soonest_is_evicted_first() {
    let core = Core::try_new(STEP_BYTES).expect("memory");
    let sets = [0, 1].map(|set| {
        let id = SetId { shard: 0, set };
        core.table.lock(id).expect("a free set")
    });
    // In minutes: a day, ten minutes, an hour, two minutes.
    for (slot, minutes) in [1_440, 10, 60, 2].into_iter().enumerate() {
        put(&core, &sets[0], slot, minutes * MINUTE);
    }
    let pass = Pass::at(NOW);
    let once = put(&core, &sets[1], 0, MINUTE);
    sets[1].put_tag(0, once.marked_once(pass));
    let again = put(&core, &sets[1], 1, MINUTE);
    sets[1].put_tag(1, again.marked_again(pass));
    let evict = || {
        let slots = sets
            .iter()
            .flat_map(|set| (0..WAYS).map(move |it| (set, it)));
        let slots = slots.filter(|(set, slot)| !set.tag(*slot).is_empty());
        let (_, (set, slot)) = core.evict(slots, EvictionRank::OnceNow, NOW)?;
        Some((set.id().set, slot))
    };
    let order: Vec<_> = std::iter::from_fn(evict).collect();
    assert_eq!(order, [(0, 3), (0, 1), (0, 2), (0, 0), (1, 0)]);
}

/// A counter that was marked after this thread had read its clock, but before this thread held its set, is in use.
#[test]
fn a_mark_of_a_later_pass_is_not_old() {
    let core = Core::try_new(STEP_BYTES).expect("memory");
    let id = SetId { shard: 0, set: 0 };
    for passes in 1..=4 {
        let later = Time::from_nanos(NOW.nanos() + (passes << 30));
        {
            let set = core.table.lock(id).expect("a free set");
            let tag = put(&core, &set, 0, MINUTE * 60);
            set.put_tag(0, tag.marked_again(core.marking_pass(later)));
        }
        core.age_marks(0, 1, NOW);
        let set = core.table.lock(id).expect("a free set");
        let slots = || std::iter::once((&set, 0));
        assert!(core.evict(slots(), EvictionRank::OnceNow, NOW).is_none());
        assert!(core.evict(slots(), EvictionRank::OnceNow, later).is_none());
    }
}

/// After the clock was set back, counters become idle as before.
#[test]
fn a_clock_that_was_set_back_does_not_keep_counters() {
    let core = Core::try_new(STEP_BYTES).expect("memory");
    let set = core
        .table
        .lock(SetId { shard: 0, set: 0 })
        .expect("a free set");
    core.marking_pass(Time::from_nanos(NOW.nanos() + MINUTE));
    let tag = put(&core, &set, 0, MINUTE * 60);
    set.put_tag(0, tag.marked_again(core.marking_pass(NOW)));
    let evict = |passes: u64| {
        let now = Time::from_nanos(NOW.nanos() + (passes << 30));
        core.evict(std::iter::once((&set, 0)), EvictionRank::OnceNow, now)
            .is_some()
    };
    assert_eq!([0, 1, 2].map(evict), [false, false, true]);
}
