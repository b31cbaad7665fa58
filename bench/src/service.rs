//! The service from outside: `tidegate serve` beside a server that does nothing, over real sockets.

mod before;
mod client;
mod keys;
pub mod load;
mod message;
mod noise;
pub mod null;
mod process;
mod rules;
mod ticker;

use std::error::Error;
use std::time::{Duration, Instant};

use crate::arguments::Scale;
use crate::statistic::Statistic;
use crate::table::{About, Aim, Bound, Row, Table};
pub use client::{Answer, Client};
pub use keys::{Keys, Spread};
pub use load::{Denials, Load, Sample, Shape};
pub use noise::Noise;
pub use process::{Executable, NULL_SERVER, Process, cpu_seconds};
pub use rules::{LIMITED, RulesFile};
pub use ticker::Ticker;

/// Calls a second of the open loop.
const RATE: u32 = 20_000;

/// Calls under way on each connection of the closed loop.
const IN_FLIGHT: usize = 16;

/// Callers that are hot: those whose calls are all denied, and as many whose calls are all allowed.
const HOT_CALLERS: u64 = 1_000;

/// Limitador's and the floor's seconds of processor for a million calls, as measured once on another
/// machine (issue 3 of this repository): closed loop over a million keys, and open loop, where it was
/// 31 to 33. A ratio to the floor carries over to this machine, seconds do not.
const LIMITADOR_CLOSED: f64 = 17.9 / 4.0;
const LIMITADOR_OPEN: f64 = 32.0 / 18.0;

/// How the section of the service begins, by which it is found in a page.
pub const HEADING: &str = "# The service\n";

const METHOD: &str = "
Written by `scripts/bench --only service --before COMMIT --write`. The *floor* is a server on the same HTTP/2 crate that lets every
request pass, on one thread; *tidegate* is `tidegate serve` of this commit. Both answer Envoy's `ShouldRateLimit` to a client in
`bench/src/service` over four connections, one descriptor, a million callers at random, all allowed unless the row says otherwise. Hot
callers are a thousand; so are those who are denied, each with all headers and the body that Envoy is to send, and the row that
compares denied calls with allowed ones compares them with those of hot callers. Closed loop: sixteen calls under way on each
connection. Open loop: 20,000 calls a second, evenly, latency from the instant a call was due. tidegate has one thread unless the row
says otherwise. Beside an earlier commit the two servers take turns in a closed loop. Fifteen rounds of one and a half seconds, servers
interleaved (A B, B A, …): the median, with the least and the greatest in brackets; a ratio is the median of the ratios of each round.
Processor time is the server's own, by the scheduler's count. Limitador was not run here: its figure is what was once measured on
another machine, over the floor's figure of that machine (17.9 ÷ 4.0 and 32 ÷ 18), and ours is the ratio of this table over that.

";

const ABOUT: About = About {
    heading: HEADING,
    method: METHOD,
    beside: "floor",
};

/// How large each measurement is.
struct Sizes {
    rounds: usize,
    warmup: Duration,
    duration: Duration,
    keys: u64,
    rules: usize,
}

/// A server and what it is asked.
struct Subject<'a> {
    server: &'a Process,
    keys: Keys,
}

/// What each round found of one subject.
struct Samples(Vec<Sample>);

/// Measures the whole table.
pub fn run(scale: Scale) -> Result<Table, Box<dyn Error>> {
    let sizes = Sizes::of(scale);
    let few = RulesFile::write(2)?;
    let [floor, one, all] = [
        Process::null()?,
        Process::tidegate(few.path(), 1)?,
        Process::tidegate(few.path(), cores())?,
    ];
    let [known, hot, unknown, denied] = [
        (rules::LIMITED, sizes.keys),
        (rules::LIMITED, HOT_CALLERS),
        (rules::UNKNOWN, sizes.keys),
        (rules::DENIED, HOT_CALLERS),
    ]
    .map(|(entry, count)| Keys {
        entry,
        count,
        spread: Spread::Even,
    });
    eprintln!("service: {} callers ...", sizes.keys);
    for server in [&one, &all] {
        load::fill(server, known)?;
    }
    load::fill(&one, denied)?;
    let resident = Statistic::of(&[one.resident_mb()?]);
    let subject = |server, keys| Subject { server, keys };
    let subjects = [
        subject(&floor, known),
        subject(&one, known),
        subject(&one, unknown),
        subject(&one, hot),
        subject(&one, denied),
        subject(&all, known),
    ];
    let noise = Noise::begin(&[&floor, &one, &all])?;
    eprintln!("service: closed loop ...");
    let in_flight = IN_FLIGHT;
    let closed = sizes.interleave(&subjects, Shape::Closed { in_flight })?;
    eprintln!("service: open loop ...");
    let open = sizes.interleave(&subjects[..2], Shape::Open { per_second: RATE })?;
    let callers = [
        ("a call", known),
        ("a call from a hot caller", hot),
        ("a denied call", denied),
    ];
    let beside_before = before::rows(&sizes, &few, &one, &callers)?;
    let others = noise.others(&[&floor, &one, &all])?;
    drop([floor, one, all]);
    eprintln!("service: start ...");
    let starts = start_rows(&sizes)?;
    let mut rows = closed_rows(&closed);
    rows.extend(open_rows(&open));
    rows.extend(beside_before);
    rows.push(
        Row::of_tidegate("resident with all callers live", "MB", resident)
            .aiming(Aim::on_tidegate(Bound::AtMost, 60.0, 45.0)),
    );
    rows.extend(starts);
    Ok(Table::new(ABOUT, rows, others, scale))
}

fn closed_rows(closed: &[Samples]) -> Vec<Row> {
    let [floor, one, unmatched, hot, denied, all] = closed else {
        return Vec::new();
    };
    let cpu = |samples: &Samples| samples.each(Sample::cpu_micros);
    let (floor_cpu, one_cpu, all_cpu) = (cpu(floor), cpu(one), cpu(all));
    let rate = [floor, one, all].map(|samples| samples.each(Sample::thousands_per_second));
    let [floor_rate, one_rate, all_rate] = rate;
    let ratio = Row::ratio(&floor_cpu, &one_cpu);
    let at_most = |must, wish| Aim::on_ratio(Bound::AtMost, must, wish);
    vec![
        Row::pair(
            "processor of a call, closed loop",
            "µs",
            &floor_cpu,
            &one_cpu,
        )
        .aiming(at_most(1.6, 1.25)),
        Row::of_ratio(
            "the same against Limitador in memory, by way of the floor",
            &ratio.map(|ratio| ratio / LIMITADOR_CLOSED),
        )
        .aiming(at_most(0.5, 0.33)),
        Row::pair(
            "calls on one core, closed loop",
            "k/s",
            &floor_rate,
            &one_rate,
        )
        .aiming(Aim::on_ratio(Bound::AtLeast, 0.6, 0.8)),
        Row::of_ratio(
            "processor of a call that matches nothing ÷ one that matches",
            &Row::ratio(&one_cpu, &cpu(unmatched)),
        )
        .aiming(at_most(1.0, 1.0)),
        Row::of_ratio(
            "processor of a denied call ÷ an allowed one",
            &Row::ratio(&cpu(hot), &cpu(denied)),
        )
        .aiming(at_most(1.15, 1.05)),
        Row::pair(
            "processor of a call, a thread for each core",
            "µs",
            &floor_cpu,
            &all_cpu,
        ),
        Row::pair(
            "calls, a thread for each core",
            "k/s",
            &floor_rate,
            &all_rate,
        ),
    ]
}

fn open_rows(open: &[Samples]) -> Vec<Row> {
    let [floor, one] = open else {
        return Vec::new();
    };
    let [floor_cpu, one_cpu] = [floor, one].map(|samples| samples.each(Sample::cpu_micros));
    let latency = |hundredths: usize| {
        [floor, one].map(|samples| samples.each(|sample| sample.percentile(hundredths)))
    };
    let [[floor_median, one_median], [floor_tail, one_tail]] = [latency(50), latency(99)];
    let ratio = Row::ratio(&floor_cpu, &one_cpu);
    let at_most = |must, wish| Aim::on_ratio(Bound::AtMost, must, wish);
    vec![
        Row::pair(
            "processor of a call at 20,000/s",
            "µs",
            &floor_cpu,
            &one_cpu,
        )
        .aiming(at_most(1.25, 1.1)),
        Row::of_ratio(
            "the same against Limitador in memory, by way of the floor",
            &ratio.map(|ratio| ratio / LIMITADOR_OPEN),
        ),
        Row::pair("p50 at 20,000/s", "µs", &floor_median, &one_median).aiming(at_most(1.15, 1.05)),
        Row::pair("p99 at 20,000/s", "µs", &floor_tail, &one_tail),
    ]
}

/// The time from the start of the process to its first answer, and the processor's part of it.
fn start_rows(sizes: &Sizes) -> Result<[Row; 2], Box<dyn Error>> {
    let many = RulesFile::write(sizes.rules)?;
    let keys = Keys {
        entry: rules::LIMITED,
        count: 1,
        spread: Spread::Even,
    };
    let (mut elapsed, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let begun = Instant::now();
        let server = Process::tidegate(many.path(), 1)?;
        load::fill(&server, keys)?;
        elapsed.push(begun.elapsed().as_secs_f64() * 1e3);
        processor.push(server.cpu_seconds()? * 1e3);
    }
    let [elapsed, processor] = [elapsed, processor].map(|millis| Statistic::of(&millis));
    let what = format!("start to first answer with {} rules", sizes.rules);
    let aim = Aim::on_tidegate(Bound::AtMost, 300.0, 100.0);
    Ok([
        Row::of_tidegate(&what, "ms", elapsed).aiming(aim),
        Row::of_tidegate("of that, processor", "ms", processor),
    ])
}

fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).unwrap_or(u32::MAX)
}

// === impl Sizes ===

impl Sizes {
    const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Full => Self {
                rounds: 15,
                warmup: Duration::from_millis(500),
                duration: Duration::from_millis(1_500),
                keys: 1_000_000,
                rules: 10_000,
            },
            Scale::Quick => Self {
                rounds: 1,
                warmup: Duration::from_millis(20),
                duration: Duration::from_millis(100),
                keys: 2_000,
                rules: 100,
            },
        }
    }

    /// Puts the load on each subject in turn: A B, B A, and so on.
    fn interleave(
        &self,
        subjects: &[Subject<'_>],
        shape: Shape,
    ) -> Result<Vec<Samples>, Box<dyn Error>> {
        let mut samples: Vec<Samples> = subjects.iter().map(|_| Samples(Vec::new())).collect();
        for round in 0..self.rounds {
            let mut order: Vec<usize> = (0..subjects.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let Subject { server, keys } = subjects[index];
                let denials = if keys.entry == rules::DENIED {
                    Denials::Expected
                } else {
                    Denials::Fault
                };
                let load = Load {
                    shape,
                    keys,
                    denials,
                    warmup: self.warmup,
                    duration: self.duration,
                };
                let sample = load.run(server, round as u64)?;
                if denials == Denials::Expected && sample.denied < sample.calls {
                    return Err("an answer that is not a denial".into());
                }
                samples[index].0.push(sample);
            }
        }
        Ok(samples)
    }
}

// === impl Samples ===

impl Samples {
    /// One figure of each round.
    fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.0.iter().map(figure).collect()
    }
}
