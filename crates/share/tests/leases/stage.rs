//! Nodes without a network in between: each call is answered at once, and counted.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull,
    Store, StoreError,
};

use crate::wire::{Fate, Weather};
use crate::world::{Node, World, settle};

/// A world whose nodes are next to the store.
pub(crate) struct Stage(pub(crate) World);

/// Requests that make a key hot, and the draw that comes of it.
pub(crate) const TO_GET_HOT: u64 = 4;

// === impl Stage ===

impl Stage {
    /// Plays on a stage with so many nodes.
    pub(crate) fn play(n_nodes: usize, play: impl AsyncFnOnce(Self)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for _ in 0..n_nodes {
                world.join((0, 0), Weather::default());
            }
            play(Self(world)).await;
        });
    }

    pub(crate) fn node(&self, place: usize) -> &Node {
        &self.0.nodes[place]
    }

    /// Asks a node for one limit.
    pub(crate) async fn ask(
        &self,
        place: usize,
        charge: Charge<'_>,
    ) -> Result<Decision, StoreError> {
        let (_, decisions) = self.ask_all(place, &[charge]).await?;
        Ok(decisions[0])
    }

    /// Asks a node for several limits together.
    pub(crate) async fn ask_all(
        &self,
        place: usize,
        charges: &[Charge<'_>],
    ) -> Result<(Admission, Decisions), StoreError> {
        let mut decisions = Decisions::new();
        let shared = &self.node(place).shared;
        let asked = shared.charge(charges, Charging::AllOrNone, &mut decisions);
        let receipt = asked.await?;
        settle().await;
        Ok((receipt.admission, decisions))
    }

    /// How many of `n` requests a node admits.
    pub(crate) async fn admitted(&self, place: usize, charge: Charge<'_>, n: u64) -> u64 {
        let mut n_admitted = 0;
        for _ in 0..n {
            let decision = self.ask(place, charge).await.expect("a decision");
            n_admitted += u64::from(decision.is_allowed());
        }
        n_admitted
    }

    /// Calls that a node has made so far.
    pub(crate) fn calls(&self, place: usize) -> u64 {
        self.node(place).wire.with_events(|events| events.calls)
    }

    /// The store is there for nobody, or again.
    pub(crate) fn lose_store(&self, is_lost: bool) {
        let fates = if is_lost {
            vec![Fate::Open]
        } else {
            Vec::new()
        };
        for node in &self.0.nodes {
            let weather = Weather::new(fates.clone());
            node.wire.with_events(|events| events.weather = weather);
        }
    }

    /// Time passes, and nodes look through what they have in hand.
    pub(crate) async fn pass(&mut self, span: Duration) {
        self.0.advance(span).await;
        settle().await;
    }

    /// Moves to the beginning of the next window.
    pub(crate) async fn next_window(&mut self, window: Duration) {
        let nanos = u64::try_from(window.as_nanos()).expect("short");
        let now = self.0.clock.now().nanos();
        self.pass(Duration::from_nanos(nanos - now % nanos)).await;
    }
}

/// The window of every limit on stage.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

pub(crate) fn fixed_window(limit: u64) -> Quota {
    quota(limit, Algorithm::FixedWindow)
}

pub(crate) fn quota(limit: u64, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: WINDOW,
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

/// A leased charge of one counter of a limit.
pub(crate) fn charge(limit: u128, quota: &Quota) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(limit),
            values: &["ann"],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Leased,
    }
}
