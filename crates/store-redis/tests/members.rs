//! Members and plans in Redis: the script against the model, and what it leaves behind.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_algorithms::Time;
use tidegate_store::members::model::ModelMembers;
use tidegate_store::{Beat, LimitId, MAX_MEMBERS, Members, NodeId, Pulse, Want};
use tidegate_store_redis::RedisMembers;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Route};
use tidegate_store_redis::test_util::{ClusterSetup, PATIENCE, RedisServer};

/// Long, for keys expire by Redis' own clock while the test has another.
const PACE: Duration = Duration::from_secs(20);
const EXPIRY: Duration = Duration::from_mins(1);

/// The members in Redis, with their time in the test's hands.
struct Subject {
    client: Client,
    members: RedisMembers,
}

/// What one node does.
#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Beat {
        node: u64,
        alone_among: u32,
        wants: Vec<Want>,
    },
    Leave {
        node: u64,
    },
}

// === impl Subject ===

impl Subject {
    fn new(server: &RedisServer) -> Self {
        static NAMES: AtomicU32 = AtomicU32::new(0);
        let client = client(server);
        let name = NAMES.fetch_add(1, Ordering::Relaxed).to_string();
        Self {
            members: RedisMembers::by_stored_time(&client, &name),
            client,
        }
    }

    async fn beat(&self, beat: &Beat<'_>, now: Time) -> Pulse {
        let key = self.members.time_key();
        let set = |command: &mut Command<'_>| {
            command.arg("SET").arg(&key).number(now.nanos() / 1_000);
        };
        self.client.call(Route::Any, set).await.unwrap();
        self.members.beat(beat).await.unwrap()
    }
}

fn client(server: &RedisServer) -> Client {
    client_of(&server.url())
}

fn client_of(url: &str) -> Client {
    let config = ClientConfig::from_url(url).unwrap();
    Client::new(&config).unwrap().with_timeout(PATIENCE)
}

fn beat(node: u64, wants: &[Want]) -> Beat<'_> {
    Beat {
        node: NodeId(node),
        expiry: EXPIRY,
        pace: PACE,
        alone_among: 0,
        wants,
    }
}

fn want(parts: u32, demand: u32) -> Want {
    Want {
        limit: LimitId(1),
        window: Duration::from_secs(20),
        memory: Duration::ZERO,
        parts,
        demand,
    }
}

fn any_want(limit: u128) -> impl Strategy<Value = Want> {
    let parts = prop_oneof![1_u32..20, 1_u32..2_000];
    // A limit's window is its own; how long it remembers changes with its numbers.
    let window = Duration::from_secs(if limit == 1 { 7 } else { 20 });
    let memory = (0_u64..3).prop_map(move |windows| match limit {
        1 => Duration::ZERO,
        _ => window * (1 + u32::try_from(windows / 2).unwrap()),
    });
    (parts, 0_u32..4_000, memory).prop_map(move |(parts, demand, memory)| Want {
        limit: LimitId(limit),
        window,
        memory,
        parts,
        demand,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let wants = prop_oneof![
        any_want(1).prop_map(|want| vec![want]),
        any_want(2).prop_map(|want| vec![want]),
        (any_want(1), any_want(2)).prop_map(|(one, two)| vec![one, two]),
    ];
    prop_oneof![
        2 => (0_u64..30_000).prop_map(|millis| Step::Wait(Duration::from_millis(millis))),
        6 => (0_u64..6, 0_u32..32, wants).prop_map(|(node, alone, wants)| Step::Beat {
            node,
            alone_among: alone.saturating_sub(24),
            wants,
        }),
        1 => (0_u64..6).prop_map(|node| Step::Leave { node }),
    ]
}

/// Whatever nodes do, the script says what the model says.
#[test]
fn the_script_does_what_the_model_does() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in vec(any_step(), 1..40))| {
        let subject = Subject::new(&server);
        let model = ModelMembers::default();
        let mut now = Time::from_micros(1_800_000_000_123_456);
        for step in steps {
            match step {
                Step::Wait(span) => now = now.plus(span),
                Step::Beat { node, alone_among, wants } => {
                    let beat = Beat { alone_among, ..beat(node, &wants) };
                    let pulse = runtime.block_on(subject.beat(&beat, now));
                    prop_assert_eq!(pulse, model.beat(&beat, now), "{:?}", beat);
                }
                Step::Leave { node } => {
                    runtime.block_on(subject.members.leave(NodeId(node))).unwrap();
                    model.leave(NodeId(node));
                }
            }
        }
    });
}

#[tokio::test]
async fn members_share_by_demand() {
    let server = RedisServer::start();
    let subject = Subject::new(&server);
    let now = Time::from_micros(1_800_000_000_000_000);
    let nodes = [(1, 0), (2, 100), (3, 1_200)];
    for (node, demand) in nodes {
        let wants = [want(1_000, demand)];
        let pulse = subject.beat(&beat(node, &wants), now).await;
        assert_eq!(u64::from(pulse.members), node);
    }
    let later = now.plus(Duration::from_secs(20));
    let mut plans = Vec::new();
    for (node, demand) in nodes {
        let wants = [want(1_000, demand)];
        let pulse = subject.beat(&beat(node, &wants), later).await;
        // The first node made this plan while it was the only member, and idle.
        let current = pulse.plans[0].current.unwrap();
        assert_eq!((current.share, current.reserve), (0, 1_000));
        plans.push(pulse.plans[0].next.unwrap());
    }
    // In proportion to demand, less the square root; the rest stays in the store.
    assert_eq!(
        [0, 1, 2].map(|node| plans[node].share),
        [0, 74 - 8, 894 - 29]
    );
    assert!(
        plans
            .iter()
            .all(|plan| plan.reserve == 69 && plan.members == 3)
    );
}

#[tokio::test]
async fn who_comes_when_there_are_too_many_is_no_member() {
    let server = RedisServer::start();
    let subject = Subject::new(&server);
    let now = Time::from_micros(1_800_000_000_000_000);
    for node in 0..u64::from(MAX_MEMBERS) {
        subject.beat(&beat(node, &[]), now).await;
    }
    let late = u64::from(MAX_MEMBERS);
    let pulse = subject.beat(&beat(late, &[want(1_000, 10)]), now).await;
    assert_eq!((pulse.members, pulse.plans[0].current), (MAX_MEMBERS, None));
    subject.members.leave(NodeId(0)).await.unwrap();
    let pulse = subject.beat(&beat(late, &[want(1_000, 10)]), now).await;
    assert_eq!(pulse.members, MAX_MEMBERS);
    assert!(pulse.plans[0].current.is_some());
}

#[tokio::test]
async fn nothing_is_stored_for_ever() {
    let server = RedisServer::start();
    let client = client(&server);
    let members = RedisMembers::new(&client, "all");
    let pulse = members.beat(&beat(7, &[want(1_000, 10)])).await.unwrap();
    assert!(pulse.now > Time::from_micros(1_700_000_000_000_000));
    let keys = client.call(Route::Any, |command| {
        command.arg("KEYS").arg("*");
    });
    let keys = keys.await.unwrap();
    let keys: Vec<String> = keys
        .array()
        .unwrap()
        .map(|key| key.str().unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    for key in keys {
        assert!(key.starts_with("tg1:{members:all}"), "{key}");
        let left = client.call(Route::Any, |command| {
            command.arg("PTTL").arg(&key);
        });
        assert!(left.await.unwrap().integer().unwrap() > 0, "{key}");
    }
}

#[tokio::test]
async fn members_of_a_cluster_lie_in_one_slot() {
    let cluster = ClusterSetup::start(3);
    let client = client_of(&cluster.url());
    for name in ["one", "another", "a third"] {
        let members = RedisMembers::new(&client, name);
        let wants = [want(1_000, 10)];
        let pulse = members.beat(&beat(1, &wants)).await.unwrap();
        assert_eq!(pulse.plans[0].current.unwrap().share, 10 - 3);
        assert_eq!(members.beat(&beat(2, &wants)).await.unwrap().members, 2);
        members.leave(NodeId(1)).await.unwrap();
        assert_eq!(members.beat(&beat(2, &wants)).await.unwrap().members, 1);
    }
}
