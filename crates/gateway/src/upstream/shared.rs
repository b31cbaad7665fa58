//! One upstream as all threads see it, and the choice among its targets.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_observe::{TargetGauges, UpstreamGauges};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::addresses::{Resolver, SystemResolver};
use super::budget::RetryBudget;
use super::check::check_for_ever;
use super::connect::Connector;
use super::counters::UpstreamCounters;
use super::error::{ForwardError, UpstreamError};
use super::scarce::ScarceConnections;
use super::target::TargetState;
use super::timer::now;
use super::tls::ClientTls;
use crate::config::{Balance, TargetConfig, UpstreamConfig};

/// One upstream: health, addresses, requests in progress, counters.
pub(crate) struct SharedUpstream {
    /// Its settings.
    pub(crate) config: Arc<UpstreamConfig>,
    /// Its counters.
    pub(crate) counters: Arc<UpstreamCounters>,
    /// Tells it from every other upstream of the process.
    pub(super) id: u64,
    pub(super) targets: Vec<Arc<TargetState>>,
    pub(super) connector: Connector,
    pub(super) budget: RetryBudget,
    /// In the order of the targets.
    pub(super) scarce: Vec<Arc<ScarceConnections>>,
}

/// The choices that one thread has made, so that threads need not agree.
#[derive(Debug)]
pub(super) struct BalanceState {
    turn: Cell<usize>,
    random: Cell<u64>,
}

/// The targets that one request has tried.
pub(super) type TriedTargets = SmallVec<[usize; 4]>;

/// Neither names nor health are asked for more often, whatever the settings say.
pub(super) const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

// === impl SharedUpstream ===

impl SharedUpstream {
    /// A new upstream. Reads the files of TLS, if a target needs it.
    pub(crate) fn new(config: Arc<UpstreamConfig>) -> Result<Arc<Self>, UpstreamError> {
        Self::replacing(config, &[])
    }

    /// The upstream of a reloaded config. It keeps the health and the addresses of targets that an upstream of the same name had
    /// before; one that is the same in all, the content of its files included, stays with its connections.
    pub(crate) fn replacing(
        config: Arc<UpstreamConfig>,
        old: &[Arc<SharedUpstream>],
    ) -> Result<Arc<Self>, UpstreamError> {
        let old = old.iter().find(|old| old.config.name == config.name);
        let new = Self::with_resolver(config, old, Arc::new(SystemResolver))?;
        let is_same = |old: &&Arc<Self>| {
            let has_same_files = match (&old.connector.tls, &new.connector.tls) {
                (Some(old), Some(new)) => new.has_material_of(old),
                _ => true,
            };
            has_same_files && old.config == new.config
        };
        Ok(old
            .filter(is_same)
            .map_or_else(|| Arc::clone(&new), Arc::clone))
    }

    pub(super) fn with_resolver(
        config: Arc<UpstreamConfig>,
        old: Option<&Arc<Self>>,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Arc<Self>, UpstreamError> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let is_tls = config.targets.iter().any(|target| target.is_tls);
        let tls = if is_tls {
            let tls = ClientTls::new(&config)?;
            for target in config.targets.iter().filter(|target| target.is_tls) {
                tls.name_of(target)?;
            }
            Some(tls)
        } else {
            None
        };
        let old_targets = old.map_or(&[][..], |old| &old.targets);
        let keep = |target: &TargetConfig| {
            let old = old_targets.iter().find(|old| old.config == *target);
            old.map_or_else(|| Arc::new(TargetState::new(target)), Arc::clone)
        };
        Ok(Arc::new(Self {
            counters: old.map_or_else(Arc::default, |old| Arc::clone(&old.counters)),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            targets: config.targets.iter().map(keep).collect(),
            connector: Connector {
                resolver,
                protocol: config.protocol,
                tls,
            },
            budget: RetryBudget::default(),
            scarce: (config.targets.iter())
                .map(|_| ScarceConnections::new(config.max_connections))
                .collect(),
            config,
        }))
    }

    /// Looks up names and checks health, for ever; dropped to stop, and may then be started again.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        for target in &self.targets {
            if !target.addresses.is_literal() {
                tasks.spawn(look_up_for_ever(Arc::clone(&self), Arc::clone(target)));
            }
            match &self.config.health_check {
                Some(_) => {
                    tasks.spawn(check_for_ever(Arc::clone(&self), Arc::clone(target)));
                }
                None => target.health.forget_checks(),
            }
        }
        while tasks.join_next().await.is_some() {}
        std::future::pending::<()>().await;
    }

    /// Its counts and the state of its targets, for metrics.
    pub(crate) fn gauges(&self) -> UpstreamGauges {
        let now = now();
        let target = |target: &Arc<TargetState>| TargetGauges {
            name: target.name.clone(),
            is_up: !target.health.is_down() && !target.health.is_ejected(now),
            in_progress: target.in_progress() as u64,
        };
        let counters = &self.counters;
        UpstreamGauges {
            name: self.config.name.clone(),
            requests: counters.requests.get(),
            retries: counters.retries.get(),
            retries_denied: counters.retries_denied.get(),
            connections: counters.connections.get(),
            failures: counters.failures(),
            targets: self.targets.iter().map(target).collect(),
        }
    }

    /// Chooses a target by its place in the list: a healthy one that was not tried, else a healthy one, else an ejected one.
    pub(super) fn choose(
        &self,
        state: &BalanceState,
        tried: &TriedTargets,
        now: Instant,
    ) -> Result<usize, ForwardError> {
        if let [only] = &self.targets[..] {
            // To eject the only target would help nobody.
            return if only.health.is_down() {
                Err(ForwardError::NoHealthyTarget)
            } else {
                Ok(0)
            };
        }
        // A target on which this request failed comes last: the ejection of another one is only a guess.
        let rank = |index: usize, target: &TargetState| {
            2 * u8::from(tried.contains(&index)) + u8::from(target.health.is_ejected(now))
        };
        let ranked: SmallVec<[(u8, usize); 8]> = (self.targets.iter().enumerate())
            .filter(|(_, target)| !target.health.is_down())
            .map(|(index, target)| (rank(index, target), index))
            .collect();
        let best = ranked.iter().map(|(rank, _)| *rank).min();
        let best = best.ok_or(ForwardError::NoHealthyTarget)?;
        let candidates: SmallVec<[usize; 8]> = (ranked.iter())
            .filter(|(rank, _)| *rank == best)
            .map(|(_, index)| *index)
            .collect();
        if tried.is_empty() {
            state.next_turn();
        }
        Ok(self.balance(state, &candidates))
    }

    fn balance(&self, state: &BalanceState, candidates: &[usize]) -> usize {
        match self.config.balance {
            Balance::RoundRobin => candidates[state.turn.get() % candidates.len()],
            Balance::LeastRequests => {
                let n_candidates = candidates.len();
                let first = state.random_below(n_candidates);
                // Another one, if there is another one.
                let step = 1 + state.random_below(n_candidates.saturating_sub(1).max(1));
                let (first, second) =
                    (candidates[first], candidates[(first + step) % n_candidates]);
                let load = |index: usize| self.targets[index].in_progress();
                if load(second) < load(first) {
                    second
                } else {
                    first
                }
            }
        }
    }
}

impl fmt::Debug for SharedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedUpstream")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

// === impl BalanceState ===

impl BalanceState {
    pub(super) fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let seed = RandomState::new().hash_one(0);
        Self {
            // Threads begin at different targets.
            turn: Cell::new(usize::try_from(seed >> 40).unwrap_or(0)),
            random: Cell::new(seed | 1),
        }
    }

    /// Goes on to the next target. Retries do not, else every other request might meet the same one.
    fn next_turn(&self) {
        self.turn.set(self.turn.get().wrapping_add(1));
    }

    /// An even choice, by xorshift: spread matters here, secrecy does not.
    fn random_below(&self, bound: usize) -> usize {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        usize::try_from(random >> 33).unwrap_or(0) % bound
    }
}

async fn look_up_for_ever(upstream: Arc<SharedUpstream>, target: Arc<TargetState>) {
    let mut interval =
        tokio::time::interval(upstream.config.resolve_interval.max(SHORTEST_INTERVAL));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        target
            .addresses
            .refresh(&*upstream.connector.resolver)
            .await;
    }
}
