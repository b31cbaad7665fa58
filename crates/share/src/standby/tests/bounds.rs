//! What nodes admit together in a window in which the common store fails: the bounds of docs/failure.md.
//!
//! For a limit of L and N nodes, each of which has a share of s = L / N, at least 1, when it is alone.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_algorithms::Rounding;

use super::*;

/// Some nodes, and what they have admitted.
struct Service {
    nodes: Vec<Shared>,
    quota: Quota,
    consistency: Consistency,
    admitted: Vec<Admitted>,
}

#[derive(Clone, Copy, Debug)]
struct Admitted {
    at: Time,
    node: usize,
    cost: u64,
    by: By,
}

/// Who admitted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Store,
    Node,
}

/// How a limit is made and shared.
#[derive(Clone, Copy, Debug)]
struct Setup {
    n_nodes: usize,
    limit: u64,
    algorithm: Algorithm,
    consistency: Consistency,
}

/// One request.
#[derive(Clone, Copy, Debug)]
struct Ask {
    node: usize,
    cost: u64,
    /// How long after the one before.
    after: Duration,
    fault: Fault,
}

// === impl Service ===

impl Service {
    fn new(setup: Setup) -> Self {
        let common = common();
        let members = u32::try_from(setup.n_nodes).unwrap();
        let node = |_| node(&common, StandbyLimit::Share, members);
        Self {
            nodes: (0..setup.n_nodes).map(node).collect(),
            quota: quota(setup.limit, setup.algorithm),
            consistency: setup.consistency,
            admitted: Vec::new(),
        }
    }

    fn ask(&mut self, ask: Ask) {
        let number = ask.node % self.nodes.len();
        let node = &self.nodes[number];
        let clock = &node.local().clock().0;
        clock.advance(ask.after);
        node.remote().set(ask.fault);
        let charges = [Charge {
            consistency: self.consistency,
            ..charge(1, &self.quota, ask.cost)
        }];
        let mut decisions = Decisions::new();
        let charged = wait(node.charge(&charges, Charging::AllOrNone, &mut decisions));
        let (receipt, by) = if let Ok(receipt) = charged {
            (receipt, By::Store)
        } else {
            let alone = node.charge_alone(&charges, Charging::AllOrNone, &mut decisions);
            (alone.unwrap(), By::Node)
        };
        if receipt.admission == Admission::Admitted {
            self.admitted.push(Admitted {
                at: clock.now(),
                node: number,
                cost: ask.cost,
                by,
            });
        }
    }

    /// What was admitted in each window: the aligned ones, or for a log those that end with a request.
    fn windows(&self) -> Vec<Vec<Admitted>> {
        if let Algorithm::SlidingLog { .. } = self.quota.algorithm() {
            let until = |(last, end): (usize, &Admitted)| {
                let is_in = |it: &&Admitted| it.at.plus(MINUTE) > end.at;
                let so_far = self.admitted[..=last].iter();
                so_far.filter(is_in).copied().collect()
            };
            return self.admitted.iter().enumerate().map(until).collect();
        }
        let mut windows = BTreeMap::<u128, Vec<Admitted>>::new();
        for admitted in &self.admitted {
            let window = u128::from(admitted.at.nanos()) / MINUTE.as_nanos();
            windows.entry(window).or_default().push(*admitted);
        }
        windows.into_values().collect()
    }

    fn n_nodes(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn share(&self) -> u64 {
        (self.quota.limit() / self.n_nodes()).max(1)
    }
}

fn sum<'a>(admitted: impl IntoIterator<Item = &'a Admitted>) -> u64 {
    admitted.into_iter().map(|it| it.cost).sum()
}

fn setups() -> impl Strategy<Value = Setup> {
    let counter = Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    };
    let log = Algorithm::SlidingLog { log_refused: false };
    let algorithms = prop::sample::select(vec![Algorithm::FixedWindow, counter, log]);
    let consistencies = prop::sample::select(vec![Consistency::Strict, Consistency::Leased]);
    let numbers = (1_usize..5, 1_u64..40);
    (numbers, algorithms, consistencies).prop_map(|((n_nodes, limit), algorithm, consistency)| {
        Setup {
            n_nodes,
            limit,
            algorithm,
            consistency,
        }
    })
}

fn asks(faults: &'static [Fault]) -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0_usize..4, 1_u64..4, 0_u64..3_000);
    let ask = (ask, prop::sample::select(faults)).prop_map(|((node, cost, millis), fault)| Ask {
        node,
        cost,
        after: Duration::from_millis(millis),
        fault,
    });
    prop::collection::vec(ask, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// However the store fails, for single calls or for a while: a node alone admits the rest of its share,
    /// so all together admit at most L + N x s.
    #[test]
    fn a_node_alone_never_gets_beyond_its_share(
        setup in setups(),
        asks in asks(&[Fault::None, Fault::None, Fault::Lost, Fault::Late]),
    ) {
        let mut service = Service::new(setup);
        for ask in asks {
            service.ask(ask);
        }
        let limit = service.quota.limit();
        for window in service.windows() {
            let by_store = sum(window.iter().filter(|it| it.by == By::Store));
            prop_assert!(by_store <= limit, "{by_store} of {limit}: {window:?}");
            for (last, _) in window.iter().enumerate().filter(|(_, it)| it.by == By::Node) {
                let node = window[last].node;
                let own = sum(window[..=last].iter().filter(|it| it.node == node));
                prop_assert!(own <= service.share(), "{own} of node {node}: {window:?}");
            }
            let most = limit + service.n_nodes() * service.share();
            prop_assert!(sum(&window) <= most);
        }
    }

    /// The store goes once and stays gone: at most L + (N - 1) x s, for who has had all of the limit gets
    /// nothing more.
    #[test]
    fn a_store_that_goes_costs_the_shares_of_the_others(
        setup in setups(),
        asks in asks(&[Fault::None]),
        goes_at in 0_usize..120,
    ) {
        let mut service = Service::new(setup);
        for (number, ask) in asks.into_iter().enumerate() {
            let fault = if number < goes_at { Fault::None } else { Fault::Lost };
            service.ask(Ask { fault, ..ask });
        }
        let most = service.quota.limit() + (service.n_nodes() - 1) * service.share();
        for window in service.windows() {
            prop_assert!(sum(&window) <= most, "more than {most}: {window:?}");
        }
    }

    /// The same with traffic that is even: at most L, or one request for each node.
    #[test]
    fn a_store_that_goes_costs_nothing_where_traffic_is_even(
        setup in setups(),
        n_asks in 1_usize..120,
        goes_at in 0_usize..120,
    ) {
        let mut service = Service::new(setup);
        for node in 0..n_asks {
            let fault = if node < goes_at { Fault::None } else { Fault::Lost };
            let after = Duration::from_millis(10);
            service.ask(Ask { node, cost: 1, after, fault });
        }
        let most = service.quota.limit().max(service.n_nodes());
        for window in service.windows() {
            prop_assert!(sum(&window) <= most, "more than {most}: {window:?}");
        }
    }

    /// A store that is late has counted all the same, until it refuses: in a fixed window it costs no more
    /// than one that goes for good, however often it is late.
    #[test]
    fn a_store_that_is_late_has_counted(
        setup in setups(),
        asks in asks(&[Fault::None, Fault::Late]),
    ) {
        let (algorithm, consistency) = (Algorithm::FixedWindow, Consistency::Strict);
        let setup = Setup { algorithm, consistency, ..setup };
        let mut service = Service::new(setup);
        for ask in asks {
            service.ask(ask);
        }
        let most = service.quota.limit() + (service.n_nodes() - 1) * service.share();
        for window in service.windows() {
            prop_assert!(sum(&window) <= most, "more than {most}: {window:?}");
        }
    }
}
