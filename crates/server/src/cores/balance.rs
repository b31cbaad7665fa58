//! Which core gets a connection: the one with the fewest.
//!
//! Envoy opens few connections and keeps them, so it matters where each one goes, and it matters more
//! that none goes where others are than how busy those were a moment ago.
//!
//! A connection is counted before it is handed over, so that those of a burst are spread. Two listeners
//! that choose at the very same moment may both choose the same core; the next one makes up for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc::UnboundedSender;
use tracing::error;

use super::Handed;
use crate::connection::Connection;

/// How much a core has to do. The numbers only choose; that they may be a moment old does no harm, so
/// no ordering between them is asked for.
#[derive(Debug, Default)]
pub(crate) struct Load {
    open: AtomicUsize,
    calls: AtomicU64,
}

/// The ways to all cores.
#[derive(Debug)]
pub(crate) struct Balance(Vec<Lane>);

/// The way to one core.
#[derive(Debug)]
pub(crate) struct Lane {
    // The channel needs no bound of its own: every connection in it holds a place of its listener.
    inbox: UnboundedSender<Handed>,
    load: Arc<Load>,
    /// What `calls` was at the last tick.
    seen: AtomicU64,
    lately: AtomicU64,
}

/// A connection counted among those of a core, until dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Load>);

// === impl Load ===

impl Load {
    /// Counts a call. Only the core itself does, so it needs no atomic addition.
    pub(crate) fn count_call(&self) {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
    }
}

// === impl Balance ===

impl Balance {
    pub(crate) const fn new(lanes: Vec<Lane>) -> Self {
        Self(lanes)
    }

    /// Hands a connection to the core with the fewest open ones; among equals, to the one that had the
    /// fewest calls lately.
    pub(crate) fn hand_over(&self, connection: Connection) {
        if let Some(lane) = self.lightest() {
            lane.hand_over(connection);
        }
    }

    fn lightest(&self) -> Option<&Lane> {
        self.0.iter().min_by_key(|lane| lane.weight())
    }

    /// Looks at how many calls there were since the last time; call it at even intervals.
    pub(crate) fn tick(&self) {
        self.0.iter().for_each(Lane::tick);
    }
}

// === impl Lane ===

impl Lane {
    pub(super) fn new(inbox: UnboundedSender<Handed>, load: Arc<Load>) -> Self {
        Self {
            inbox,
            load,
            seen: AtomicU64::new(0),
            lately: AtomicU64::new(0),
        }
    }

    fn weight(&self) -> (usize, u64) {
        let open = self.load.open.load(Ordering::Relaxed);
        (open, self.lately.load(Ordering::Relaxed))
    }

    fn hand_over(&self, connection: Connection) {
        let turn = Turn::new(Arc::clone(&self.load));
        if self.inbox.send(Handed { connection, turn }).is_err() {
            error!("a core has ended before its time; its connections are closed");
        }
    }

    /// Half of what was before and half of what is new: a burst is forgotten within seconds.
    fn tick(&self) {
        let calls = self.load.calls.load(Ordering::Relaxed);
        let seen = self.seen.swap(calls, Ordering::Relaxed);
        let lately = self.lately.load(Ordering::Relaxed);
        let average = lately.midpoint(calls.wrapping_sub(seen));
        self.lately.store(average, Ordering::Relaxed);
    }
}

// === impl Turn ===

impl Turn {
    fn new(load: Arc<Load>) -> Self {
        load.open.fetch_add(1, Ordering::Relaxed);
        Self(load)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tokio::sync::mpsc::unbounded_channel;

    use super::{Balance, Lane, Load, Turn};

    /// What may happen to the cores.
    #[derive(Clone, Debug)]
    enum Event {
        Open,
        /// The connection at this place among the open ones closes.
        Close(usize),
        /// The core at this place is called so often.
        Call(usize, u64),
        Tick,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => Just(Event::Open),
            2 => any::<usize>().prop_map(Event::Close),
            2 => (any::<usize>(), 0..50_u64).prop_map(|(core, calls)| Event::Call(core, calls)),
            1 => Just(Event::Tick),
        ]
    }

    fn balance(cores: usize) -> Balance {
        let lane = |_| Lane::new(unbounded_channel().0, Arc::new(Load::default()));
        Balance::new((0..cores).map(lane).collect())
    }

    /// Opens a connection where the balance says, and gives the weight that the core had.
    fn open(balance: &Balance) -> (Turn, (usize, u64)) {
        let lane = balance.lightest().expect("there is a core");
        let weight = lane.weight();
        (Turn::new(Arc::clone(&lane.load)), weight)
    }

    fn opens(balance: &Balance) -> Vec<usize> {
        balance.0.iter().map(|lane| lane.weight().0).collect()
    }

    proptest! {
        /// Whatever came before, a connection goes where no other core has fewer, and none of those with
        /// as few had fewer calls lately. What is counted is what is open.
        #[test]
        fn a_connection_goes_to_the_core_with_the_least(
            cores in 1..5_usize,
            events in prop::collection::vec(event(), 0..100),
        ) {
            let balance = balance(cores);
            let mut turns = Vec::new();
            for event in events {
                match event {
                    Event::Open => {
                        let least = balance.0.iter().map(Lane::weight).min();
                        let (turn, weight) = open(&balance);
                        prop_assert_eq!(Some(weight), least);
                        turns.push(turn);
                    }
                    Event::Close(_) if turns.is_empty() => {}
                    Event::Close(index) => drop(turns.swap_remove(index % turns.len())),
                    Event::Call(core, calls) => {
                        let load = &balance.0[core % cores].load;
                        (0..calls).for_each(|_| load.count_call());
                    }
                    Event::Tick => balance.tick(),
                }
                prop_assert_eq!(opens(&balance).iter().sum::<usize>(), turns.len());
            }
        }

        /// Connections that stay are spread evenly.
        #[test]
        fn connections_that_stay_are_spread_evenly(cores in 1..9_usize, count in 0..100_usize) {
            let balance = balance(cores);
            let _turns: Vec<Turn> = (0..count).map(|_| open(&balance).0).collect();
            let opens = opens(&balance);
            prop_assert!(opens.iter().max().unwrap() - opens.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_burst_of_calls_is_forgotten() {
        let balance = balance(2);
        for _ in 0..1_000 {
            balance.0[0].load.count_call();
        }
        balance.tick();
        assert_eq!(balance.0[0].weight(), (0, 500));
        assert_eq!(balance.lightest().map(Lane::weight), Some((0, 0)));
        (0..10).for_each(|_| balance.tick());
        assert_eq!(balance.0[0].weight(), (0, 0));
    }
}
