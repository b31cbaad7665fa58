//! Nodes, a store and messages between them, in virtual time.
//!
//! Each node has a clock of its own that is off by any amount and runs a little too fast or too slow.
//! Messages are late, or lost. Nodes come, go, die, and are cut off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_store::members::model::ModelMembers;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, Pulse, StoreConfig, Want,
};

use crate::memory::FromMemory;
use crate::split::reserve::Reserves;
use crate::split::{Split, SplitConfig};

/// When it all begins.
const BEGIN: u64 = 1_800_000_000_000_000_000;

pub(super) const HEARTBEAT: Duration = Duration::from_secs(1);

pub(super) const EXPIRY: Duration = Duration::from_secs(3);

/// How the world treats those who live in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// The longest that a message is usually under way.
    pub(super) delay: Duration,
    /// One message in so many takes up to a hundred times as long; one in as many is lost.
    pub(super) bad_one_in: u64,
    /// By how much clocks run apart at the most, in parts of a million.
    pub(super) drift: u64,
}

/// Everything there is.
pub(super) struct World {
    quota: Quota,
    weather: Weather,
    random: Random,
    now: u64,
    clock: Arc<ManualClock>,
    reserve: EmbeddedStore<Arc<ManualClock>>,
    members: ModelMembers,
    pub(super) nodes: Vec<Node>,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    /// What was admitted when, by the store's time.
    pub(super) admitted: Vec<(Time, u64)>,
    /// Requests that the store was asked about.
    pub(super) asked: u64,
}

pub(super) struct Node {
    split: Split<ManualClock>,
    clock: Arc<ManualClock>,
    /// What its clock shows at the beginning.
    offset: u64,
    /// How fast its clock runs, in millionths.
    speed: u64,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// It serves, and its messages go nowhere.
    CutOff,
    Gone,
}

/// What happens.
enum Event {
    /// A node sends a heartbeat.
    Beat { node: usize },
    /// The store gets it.
    Beaten {
        node: usize,
        asked: Time,
        wants: Vec<Want>,
    },
    /// The node gets the answer.
    Pulse {
        node: usize,
        asked: Time,
        wants: Vec<Want>,
        pulse: Pulse,
    },
    /// The store gets a question for the reserve.
    Asked {
        node: usize,
        cost: u64,
        reserves: Reserves,
    },
    /// The node gets the answer.
    Answered {
        node: usize,
        cost: u64,
        reserves: Reserves,
        at: Time,
        decision: Decision,
    },
}

/// Small and good enough.
pub(super) struct Random(u64);

// === impl World ===

impl World {
    pub(super) fn new(quota: Quota, weather: Weather, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_nanos(BEGIN)));
        Self {
            quota,
            weather,
            random: Random(seed | 1),
            now: BEGIN,
            reserve: EmbeddedStore::with_clock(small(), Arc::clone(&clock)),
            clock,
            members: ModelMembers::default(),
            nodes: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
            admitted: Vec::new(),
            asked: 0,
        }
    }

    /// A node comes.
    pub(super) fn join(&mut self) {
        let offset = self.random.below(10_000_000_000) + 1;
        let drift = self.weather.drift;
        let speed = 1_000_000 - drift + self.random.below(2 * drift + 1);
        let clock = Arc::new(ManualClock::at(Time::from_nanos(offset)));
        let config = SplitConfig {
            heartbeat: HEARTBEAT,
            expiry: EXPIRY,
            store: small(),
            ..SplitConfig::default()
        };
        self.nodes.push(Node {
            split: Split::with_clock(config, Arc::clone(&clock)),
            clock,
            offset,
            speed,
            state: State::Up,
        });
        let node = self.nodes.len() - 1;
        self.tune(node);
        let wait = self.random.below(nanos(HEARTBEAT));
        self.later(wait, Event::Beat { node });
    }

    /// A node goes, and says so.
    pub(super) fn leave(&mut self, node: usize) {
        self.members.leave(self.nodes[node].split.node());
        self.nodes[node].state = State::Gone;
    }

    /// Lets time pass, and happen what is due.
    pub(super) fn pass(&mut self, span: Duration) {
        let until = self.now + nanos(span);
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.set(at);
            self.happen(event);
        }
        self.set(until);
    }

    /// A request arrives at a node.
    pub(super) fn request(&mut self, node: usize, cost: u64) {
        if self.nodes[node].state == State::Gone {
            return;
        }
        self.tune(node);
        let quota = self.quota.clone();
        let charge = charge(&quota, cost);
        let split = &self.nodes[node].split;
        let taken = split.take(&charge, Charging::AllOrNone);
        if let Some(took) = taken.expect("it fits") {
            split.note_demand(&[charge], &[took.decision], took.decision.is_allowed());
            if took.decision.is_allowed() {
                self.admitted.push((self.clock.now(), cost));
            }
            return;
        }
        let reserves = split.reserves(&[charge]);
        self.asked += 1;
        self.send(
            node,
            Event::Asked {
                node,
                cost,
                reserves,
            },
        );
    }

    /// The store's time.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.now)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Beat { node } => self.beat(node),
            Event::Beaten { node, asked, wants } => {
                let beat = self.nodes[node].split.beat_of(&wants);
                let pulse = self.members.beat(&beat, self.micros());
                self.send(
                    node,
                    Event::Pulse {
                        node,
                        asked,
                        wants,
                        pulse,
                    },
                );
            }
            Event::Pulse {
                node,
                asked,
                wants,
                pulse,
            } => {
                self.tune(node);
                self.nodes[node].split.hear(asked, &wants, &pulse);
            }
            Event::Asked {
                node,
                cost,
                reserves,
            } => self.ask(node, cost, reserves),
            Event::Answered {
                node,
                cost,
                reserves,
                at,
                decision,
            } => {
                self.tune(node);
                let charge = charge(&self.quota, cost);
                let mut decisions = [decision];
                let split = &self.nodes[node].split;
                let is_outdated = split.is_outdated(&[charge], &reserves, at, &decisions);
                split.settle(&[charge], &reserves, &mut decisions);
                split.note_demand(&[charge], &decisions, decisions[0].is_allowed());
                if !is_outdated && decisions[0].is_allowed() {
                    self.admitted.push((at, cost));
                }
            }
        }
    }

    fn beat(&mut self, node: usize) {
        if self.nodes[node].state == State::Gone {
            return;
        }
        self.tune(node);
        let asked = self.nodes[node].clock.now();
        let wants = self.nodes[node].split.wants();
        self.send(node, Event::Beaten { node, asked, wants });
        self.later(nanos(HEARTBEAT), Event::Beat { node });
    }

    fn ask(&mut self, node: usize, cost: u64, reserves: Reserves) {
        let mut decisions = Decisions::new();
        let at = {
            let asked = reserves.apply(&[charge(&self.quota, cost)]);
            let store = &self.reserve;
            let charged = store.charge_now(&asked, Charging::AllOrNone, &mut decisions);
            charged.expect("it fits").now
        };
        let decision = decisions[0];
        self.send(
            node,
            Event::Answered {
                node,
                cost,
                reserves,
                at,
                decision,
            },
        );
    }

    /// Sends a message from or to a node.
    fn send(&mut self, node: usize, event: Event) {
        let usual = nanos(self.weather.delay);
        let fate = self.random.below(self.weather.bad_one_in);
        let delay = match fate {
            0 => return,
            1 => self.random.below(usual * 100),
            _ => self.random.below(usual),
        };
        if self.nodes[node].state == State::Up {
            self.later(delay + 1, event);
        }
    }

    fn later(&mut self, wait: u64, event: Event) {
        self.count += 1;
        self.events.insert((self.now + wait, self.count), event);
    }

    fn set(&mut self, now: u64) {
        self.now = now;
        self.clock.set(Time::from_nanos(now));
    }

    /// Has a node's clock show what it shows now.
    fn tune(&self, node: usize) {
        let node = &self.nodes[node];
        let passed = u128::from(self.now - BEGIN) * u128::from(node.speed) / 1_000_000;
        let passed = u64::try_from(passed).expect("it is not that long");
        node.clock.set(Time::from_nanos(node.offset + passed));
    }

    /// The store's time as it tells it.
    fn micros(&self) -> Time {
        Time::from_micros(self.now / 1_000)
    }
}

// === impl Random ===

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64: a counter, well stirred.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % end
    }
}

pub(super) fn charge(quota: &Quota, cost: u64) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(7),
            values: &["somebody"],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Split,
    }
}

fn small() -> StoreConfig {
    StoreConfig {
        max_memory: 2 << 20,
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("it is not that long")
}
