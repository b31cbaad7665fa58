use super::*;

const MINUTE: u64 = 60_000_000_000;
const NOW: Time = Time::from_nanos(30_000_000 * MINUTE + MINUTE / 2);
const WINDOW: u64 = 30_000_000;

fn layout(shape: Shape) -> Layout {
    Layout {
        shape,
        window: MINUTE,
    }
}

/// Adds one narrow state to another.
fn add(shape: Shape, own: State, left: State) -> Option<State> {
    let layout = layout(shape);
    let end = Time::from_nanos(NOW.nanos() + 2 * MINUTE);
    let left = Remainder {
        state: left,
        expires_at: end,
    };
    let word = left.add_to(own.to_narrow(layout, end), layout, NOW);
    State::from_narrow(word, layout)
}

fn pair(window: u64, previous: u64, current: u64) -> State {
    State::Pair(sliding_counter::State {
        window,
        previous,
        current,
    })
}

fn window(window: u64, count: u64) -> State {
    State::Window(tidegate_algorithms::fixed_window::State { window, count })
}

fn ahead(nanos: u64) -> State {
    State::Instant(Ticks::from_nanos(NOW.nanos() + nanos))
}

/// Counts of one window are added; of two, only those that still count.
#[test]
fn counts_are_added() {
    let check = |shape, own, left, sum| assert_eq!(add(shape, own, left), Some(sum));
    check(
        Shape::Window,
        window(WINDOW, 3),
        window(WINDOW, 4),
        window(WINDOW, 7),
    );
    check(
        Shape::Window,
        window(WINDOW - 1, 3),
        window(WINDOW, 4),
        window(WINDOW, 4),
    );
    check(
        Shape::Pair,
        pair(WINDOW, 1, 2),
        pair(WINDOW, 3, 4),
        pair(WINDOW, 4, 6),
    );
    check(
        Shape::Pair,
        pair(WINDOW - 1, 1, 2),
        pair(WINDOW, 3, 4),
        pair(WINDOW, 5, 4),
    );
    check(
        Shape::Pair,
        pair(WINDOW, 3, 4),
        pair(WINDOW - 1, 1, 2),
        pair(WINDOW, 5, 4),
    );
}

/// Buckets add the time by which they are ahead, up to a window.
#[test]
fn debts_are_added() {
    let check = |own, left, sum| {
        assert_eq!(
            add(Shape::Instant, ahead(own), ahead(left)),
            Some(ahead(sum))
        );
    };
    check(1_000, 500, 1_500);
    check(MINUTE - 1, 500, MINUTE);
    check(2 * MINUTE, 500, 2 * MINUTE);
}
