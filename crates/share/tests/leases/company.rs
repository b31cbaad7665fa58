//! Lent limits beside others and through changes: nobody is over, and next to nothing is lost against `strict`. The
//! scripts are the real ones, in virtual time.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, RefundTo, Time};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, Decisions, LimitId, Mode, Store,
};
use tokio::task::JoinSet;

use crate::wire::{DECIDED, Fate, Weather};
use crate::world::{START, World, leased};

const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: u32 = 2;
const FATE: Fate = Fate::Arrives {
    there: 200,
    back: 200,
};
const NODES: usize = 3;

/// Requests in a window: 1.2 times the first limit.
const REQUESTS: u32 = 1_800;
const LIMIT: u64 = 1_500;

/// Requests that are sent at one moment.
const AT_ONCE: u32 = 4;

#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    /// Limits of each request, and their modes.
    limits: &'static [(u64, Mode)],
    charging: Charging,
    /// The costs of requests, in turn.
    costs: &'static [u64],
    /// Something that is done in the middle of each window.
    act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    /// Refunds so many permits of the first limit, on a node.
    Refund(u64),
    /// Half of the requests bring a number of their own for the first limit.
    Override(u64),
    /// The limits become strict, in the middle of the second window.
    Strict,
    /// A node joins, and another one ends.
    JoinAndEnd,
}

const PLAIN: Scene = Scene {
    name: "",
    limits: &[(LIMIT, Mode::Enforce)],
    charging: Charging::AllOrNone,
    costs: &[1],
    act: Act::Nothing,
};

const SCENES: [Scene; 8] = [
    Scene {
        name: "every match is charged",
        limits: &[(LIMIT, Mode::Enforce), (1_000, Mode::Enforce)],
        charging: Charging::EveryMatch,
        ..PLAIN
    },
    Scene {
        name: "quota and shadow",
        limits: &[
            (LIMIT, Mode::Enforce),
            (900, Mode::Quota),
            (1_400, Mode::Quota),
            (800, Mode::Shadow),
        ],
        ..PLAIN
    },
    Scene {
        name: "three limits",
        limits: &[
            (LIMIT, Mode::Enforce),
            (1_600, Mode::Enforce),
            (1_700, Mode::Enforce),
        ],
        ..PLAIN
    },
    Scene {
        name: "more than a node holds",
        limits: &[(10 * LIMIT, Mode::Enforce)],
        costs: &[1, 2, 1, 1, 2, 1, 1, 1, 90],
        ..PLAIN
    },
    Scene {
        name: "a refund",
        act: Act::Refund(100),
        ..PLAIN
    },
    Scene {
        name: "numbers of a request's own",
        act: Act::Override(1_000),
        ..PLAIN
    },
    Scene {
        name: "lent, then strict",
        act: Act::Strict,
        ..PLAIN
    },
    Scene {
        name: "a node joins, another ends",
        act: Act::JoinAndEnd,
        ..PLAIN
    },
];

/// A charge that was made.
struct Charged {
    began: Time,
    /// By the store if that was asked.
    decided: Time,
    limit: usize,
    cost: u64,
}

type Charges = Arc<Mutex<Vec<Charged>>>;

/// The permits of each limit that were charged in each window, and after the last one.
type Sums = Vec<[u64; WINDOWS as usize + 1]>;

fn quota(limit: u64) -> Arc<Quota> {
    let spec = QuotaSpec {
        limit,
        window: WINDOW,
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    };
    Arc::new(Quota::new(&spec).expect("valid"))
}

/// Runs a scene. Returns the charges in each window, and those of requests that lie wholly inside one.
fn run(scene: Scene, consistency: Consistency) -> (Sums, Sums) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let charges = Charges::default();
    runtime.block_on(play(scene, consistency, &charges));
    let mut sums = vec![[0; WINDOWS as usize + 1]; scene.limits.len()];
    let mut inside = sums.clone();
    let window =
        |at: Time| usize::try_from(at.since(START).as_nanos() / WINDOW.as_nanos()).expect("few");
    for charged in charges.lock().expect("no panic").iter() {
        let place = window(charged.decided);
        sums[charged.limit][place] += charged.cost;
        if window(charged.began) == place {
            inside[charged.limit][place] += charged.cost;
        }
    }
    (sums, inside)
}

async fn play(scene: Scene, mut consistency: Consistency, charges: &Charges) {
    let mut world = World::on_redis();
    for place in 0..NODES {
        world.join((place as u64 * 700_000_000, 100), Weather::new(vec![FATE]));
    }
    let quotas: Vec<_> = scene
        .limits
        .iter()
        .map(|(limit, _)| quota(*limit))
        .collect();
    let mut places = [0, 1, 2];
    let mut random = 1_u64;
    let mut tasks = JoinSet::new();
    for n in 0..REQUESTS * WINDOWS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // 80, 10 and 10 per cent.
        let place = places[[0, 0, 0, 0, 0, 0, 0, 0, 1, 2][(random >> 33) as usize % 10]];
        let mut quotas = quotas.clone();
        if let Act::Override(limit) = scene.act
            && random >> 63 == 1
        {
            quotas[0] = quota(limit);
        }
        let cost = scene.costs[n as usize % scene.costs.len()];
        let request = send(&world, place, (scene, consistency), quotas, cost, charges);
        tasks.spawn(request);
        if n % AT_ONCE == 0 {
            world.advance(WINDOW * AT_ONCE / REQUESTS).await;
        }
        if n % REQUESTS == REQUESTS / 2 {
            match scene.act {
                Act::Refund(permits) => {
                    let (shared, quota) = (Arc::clone(&world.nodes[1].shared), quota(LIMIT));
                    tasks.spawn(async move {
                        let key = leased(&quota, 1).key;
                        let refund =
                            shared.refund(key, &quota, permits, RefundTo::Current, consistency);
                        refund.await.expect("a refund");
                    });
                }
                Act::Strict if n / REQUESTS == 1 => consistency = Consistency::Strict,
                Act::JoinAndEnd => {
                    let ends = Arc::clone(&world.nodes[places[0]].shared);
                    places[0] = world.join((9, -100), Weather::new(vec![FATE]));
                    tasks.spawn(async move { ends.finish().await });
                }
                Act::Strict | Act::Nothing | Act::Override(_) => {}
            }
        }
    }
    world.advance(WINDOW / 10).await;
    tasks.join_all().await;
}

/// Sends a request to a node, and notes what it is charged.
fn send(
    world: &World,
    place: usize,
    (scene, consistency): (Scene, Consistency),
    quotas: Vec<Arc<Quota>>,
    cost: u64,
    charges: &Charges,
) -> impl Future<Output = ()> + use<> {
    let (clock, charges) = (world.clock.clone(), Arc::clone(charges));
    let shared = Arc::clone(&world.nodes[place].shared);
    DECIDED.scope(Cell::new(None), async move {
        let began = clock.now();
        let mut request = Vec::new();
        for (limit, (quota, (_, mode))) in quotas.iter().zip(scene.limits).enumerate() {
            let mut charge: Charge<'_> = leased(quota, cost);
            charge.key.limit = LimitId(limit as u128 + 1);
            charge.mode = *mode;
            charge.consistency = consistency;
            request.push(charge);
        }
        let mut decisions = Decisions::new();
        let receipt = shared.charge(&request, scene.charging, &mut decisions);
        let receipt = receipt.await.expect("a decision");
        let is_charged =
            scene.charging == Charging::EveryMatch || receipt.admission == Admission::Admitted;
        let decided = DECIDED.with(Cell::get).unwrap_or(began);
        for (limit, decision) in decisions.iter().enumerate() {
            if is_charged && decision.is_allowed() {
                charges.lock().expect("no panic").push(Charged {
                    began,
                    decided,
                    limit,
                    cost,
                });
            }
        }
    })
}

/// Never more than the limit and what was refunded, and at least 98 % of what `strict` admits.
#[test]
fn nothing_is_lost_in_company() {
    for scene in SCENES {
        let (strict, _) = run(scene, Consistency::Strict);
        let (lent, inside) = run(scene, Consistency::Leased);
        let more = match scene.act {
            Act::Refund(permits) => permits,
            _ => 0,
        };
        for (place, (limit, _)) in scene.limits.iter().enumerate() {
            let sum = |sums: &Sums| sums[place].iter().sum::<u64>();
            assert!(
                inside[place].iter().all(|sum| *sum <= limit + more),
                "{}, {limit}: {inside:?}",
                scene.name
            );
            assert!(more == 0 || sum(&lent) > limit * u64::from(WINDOWS));
            assert!(
                sum(&lent) * 100 >= sum(&strict) * 98,
                "{}, {limit}: {lent:?}, but strict {strict:?}",
                scene.name
            );
        }
    }
}
