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
