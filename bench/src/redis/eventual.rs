//! How far four nodes that only tell each other their totals go over a limit.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec};
use tidegate_share::{EventualConfig, overshoot_bound};

use crate::arguments::Scale;
use crate::fleet::{Crowd, Fleet, Pace, Terms, Windows, pass};
use crate::service::{Keys, LIMITED, Spread};
use crate::table::{Aim, Bound, Row};

/// How many nodes share the limit.
const NODES: u32 = 4;

/// How much over the limit all nodes together let pass in the worst window, in percent of the limit,
/// beside the bound that is printed.
pub fn overshoot(scale: Scale) -> Result<Row, Box<dyn Error>> {
    eprintln!("redis: overshoot ...");
    let (limit, seconds) = match scale {
        Scale::Full => (20_000, 30),
        Scale::Quick => (500, 3),
    };
    let windows = Windows {
        length: Duration::from_secs(2),
    };
    let terms = Terms {
        limit,
        windows,
        timeout: "500ms",
    };
    let fleet = Fleet::start(NODES as usize, terms, &["--consistency", "eventual"])?;
    let keys = Keys {
        entry: LIMITED,
        count: 1,
        spread: Spread::Even,
    };
    let mut crowd = Crowd::new(keys, windows, Pace::AtOnce);
    for node in &fleet.nodes {
        crowd.ask(node.process.address, Arc::default());
    }
    pass(Duration::from_secs(seconds));
    let told = crowd.finish();
    // Whatever ended in another window than it began in counts for both: rather too much than too little.
    let worst = told.passed_at_most().values().copied().max();
    let over = worst.unwrap_or_default().saturating_sub(limit);
    let quota = Quota::new(&QuotaSpec {
        limit,
        window: windows.length,
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })?;
    let bound = overshoot_bound(&quota, NODES, EventualConfig::default().slack, 1);
    let percent = |count: u64| count as f64 / limit as f64 * 100.0;
    let what = "the worst overshoot of four `eventual` nodes";
    let row = Row::pair(what, "% of the limit", &[percent(bound)], &[percent(over)]);
    Ok(row.aiming(Aim::on_tidegate(Bound::AtMost, percent(bound), 1.0)))
}
