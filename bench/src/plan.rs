//! Which measurements the table is made of.

use std::error::Error;
use std::time::Duration;

use crate::arguments::{Arguments, Group, Scale};
use crate::child::{Figures, Measurement};
use crate::contender::{Contender, Counting, Subject, Terms};
use crate::growth::Order;
use crate::parts;
use crate::report::{Bound, Goal, Row};
use crate::speed;
use crate::statistic::Statistic;

const DAY: Duration = Duration::from_hours(24);

/// How large each measurement is.
struct Sizes {
    rounds: usize,
    budget: Duration,
    keys: u64,
    growth: u64,
    logs: u64,
    sub_windows: u64,
    flood: u64,
}

/// A subject of the row with two threads.
struct Pair {
    contender: Contender,
    subjects: [Box<dyn Subject>; 2],
    arrangement: Arrangement,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Together,
    Apart,
}

/// Measures everything that was asked for.
pub fn run(arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let sizes = Sizes::of(arguments.scale);
    let wanted = |group| arguments.wants(group);
    let mut rows = Vec::new();
    if wanted(Group::Hot) {
        eprintln!("one hot key ...");
        rows.push(hot(&sizes));
    }
    if wanted(Group::Uniform) {
        eprintln!("uniform keys ...");
        rows.push(uniform(&sizes));
    }
    if wanted(Group::Parts) {
        eprintln!("the parts of a decision ...");
        rows.extend(parts(&sizes));
    }
    if wanted(Group::Threads) {
        eprintln!("two threads ...");
        rows.extend(threads(&sizes));
    }
    if wanted(Group::Memory) {
        rows.extend(memory(&sizes, Counting::Bucket)?);
        rows.extend(memory(&sizes, Counting::Window)?);
    }
    if wanted(Group::Shapes) {
        rows.extend(shapes(&sizes)?);
    }
    if wanted(Group::Flood) {
        rows.extend(flood(&sizes)?);
    }
    Ok(rows)
}

fn hot(sizes: &Sizes) -> Row {
    // So large that no measurement exhausts it, and not so fast that the bucket fills between two
    // requests: a full bucket is one that a store may forget.
    let subjects = build_all(1_000_000_000, 1);
    let goal = Goal::to_governor(Bound::AtMost(0.75));
    Row::new(
        "decision, one hot key, 1 thread",
        "ns",
        sample_all(sizes, &subjects, 1),
    )
    .aiming(goal)
}

fn uniform(sizes: &Sizes) -> Row {
    let subjects = build_all(1_000, sizes.keys);
    for (_, subject) in &subjects {
        speed::fill(subject.as_ref(), sizes.keys);
    }
    let goal = Goal::to_governor(Bound::AtMost(0.25));
    let what = format!(
        "decision over {} uniform keys, 1 thread",
        spoken(sizes.keys)
    );
    Row::new(&what, "ns", sample_all(sizes, &subjects, sizes.keys)).aiming(goal)
}

fn parts(sizes: &Sizes) -> [Row; 3] {
    // Somewhat more than a key of ours takes.
    let bytes = sizes.keys * 22;
    let row = |what: &str, statistic| {
        let what = format!("of a decision, by itself: {what}");
        Row::new(&what, "ns", vec![(Contender::Store, statistic)])
    };
    let line = format!("a line of {} MB at random", bytes / 1_000_000);
    [
        row("the clock", parts::clock(sizes.rounds)),
        row("SipHash-1-3 of the key", parts::hash(sizes.rounds)),
        row(&line, parts::line(sizes.rounds, bytes)),
    ]
}

fn threads(sizes: &Sizes) -> [Row; 3] {
    let pairs: Vec<Pair> = Contender::ALL
        .into_iter()
        .flat_map(|contender| {
            [Arrangement::Together, Arrangement::Apart]
                .map(|arrangement| Pair::build(contender, arrangement, sizes.keys))
        })
        .collect();
    let statistics = speed::interleave(&pairs, sizes.rounds, |pair, round| {
        let subjects = pair.for_threads();
        speed::sample(&subjects, sizes.keys, round, sizes.budget).millions_per_second()
    });
    let row = |arrangement: Arrangement| -> Vec<(Contender, Statistic)> {
        let all = pairs.iter().zip(&statistics);
        all.filter(|(pair, _)| pair.arrangement == arrangement)
            .map(|(pair, &statistic)| (pair.contender, statistic))
            .collect()
    };
    let (together, apart) = (row(Arrangement::Together), row(Arrangement::Apart));
    let ratio = together
        .iter()
        .zip(&apart)
        .map(|(&(contender, together), (_, apart))| {
            (contender, Statistic::of(&[together.median / apart.median]))
        });
    let keys = spoken(sizes.keys);
    let ratio = Row::new("2 threads: one table ÷ a table each", "×", ratio.collect())
        .aiming(Goal::alone(Bound::AtLeast(0.9)));
    [
        Row::new(
            &format!("2 threads over {keys} keys, one table"),
            "M/s",
            together,
        ),
        Row::new(
            &format!("2 threads over {keys} keys, a table each"),
            "M/s",
            apart,
        ),
        ratio,
    ]
}

fn memory(sizes: &Sizes, counting: Counting) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut grown: Vec<(Contender, Figures)> = Vec::new();
    for contender in Contender::ALL {
        // The limiter keeps nothing of its own for a caller.
        if contender != Contender::Limiter && contender.counts_by(counting) {
            eprintln!("memory of {} ...", contender.title());
            let keys = sizes.growth;
            let measurement = Measurement::Growth {
                contender,
                counting,
                keys,
            };
            grown.push((contender, measurement.spawn()?));
        }
    }
    let shape = match counting {
        Counting::Bucket => "bucket",
        Counting::Window => "window",
    };
    let moments = [
        (
            "tenth",
            format!("at {} keys", spoken(sizes.growth / 10)),
            24.0,
        ),
        ("end", format!("at {} keys", spoken(sizes.growth)), 24.0),
        ("worst", "at the worst point between".to_owned(), 32.0),
    ];
    let mut rows = Vec::new();
    for (moment, when, most) in moments {
        for (kind, how) in [("resident", "resident"), ("asked", "taken")] {
            let what = format!("memory of a {shape}, {when}, {how}");
            let figure =
                |figures: &Figures| Statistic::of(&[figures[&format!("{kind}_at_{moment}")]]);
            let cells = grown
                .iter()
                .map(|(contender, all)| (*contender, figure(all)))
                .collect();
            let goal = Goal::alone(Bound::AtMost(most));
            rows.push(Row::new(&what, "B/key", cells).aiming(goal));
        }
    }
    Ok(rows)
}

fn shapes(sizes: &Sizes) -> Result<[Row; 3], Box<dyn Error>> {
    let row = |what: &str, measurement: Measurement, most| -> Result<Row, Box<dyn Error>> {
        eprintln!("memory of {what} ...");
        let figures = measurement.spawn()?;
        let cell = (Contender::Store, Statistic::of(&[figures["resident"]]));
        let what = format!("memory of {what}, resident");
        Ok(Row::new(&what, "B/key", vec![cell]).aiming(Goal::alone(Bound::AtMost(most))))
    };
    let logs = |order| Measurement::Logs {
        keys: sizes.logs,
        order,
    };
    let sub_windows = Measurement::SubWindows {
        keys: sizes.sub_windows,
    };
    Ok([
        row(
            "a full log of 500, filled in turn",
            logs(Order::InTurn),
            2_200.0,
        )?,
        row(
            "a full log of 500, all filled at once",
            logs(Order::AllAtOnce),
            2_200.0,
        )?,
        row("60 sub-windows in use", sub_windows, 160.0)?,
    ])
}

fn flood(sizes: &Sizes) -> Result<[Row; 4], Box<dyn Error>> {
    eprintln!("flood ...");
    let figures = Measurement::Flood { keys: sizes.flood }.spawn()?;
    let row = |what: &str, unit, value: f64| {
        let what = format!("{} keys through 64 MiB: {what}", spoken(sizes.flood));
        Row::new(
            &what,
            unit,
            vec![(Contender::Store, Statistic::of(&[value]))],
        )
    };
    let slowdown = figures["slowest_nanos"] / figures["first_nanos"];
    Ok([
        row("first tenth", "ns", figures["first_nanos"]),
        row("slowest tenth ÷ first", "×", slowdown).aiming(Goal::alone(Bound::AtMost(1.5))),
        row("resident", "MiB", figures["resident_mib"]).aiming(Goal::alone(Bound::AtMost(66.0))),
        row("growth after the first tenth", "MiB", figures["growth_mib"])
            .aiming(Goal::alone(Bound::AtMost(1.0))),
    ])
}

fn build_all(limit: u32, keys: u64) -> Vec<(Contender, Box<dyn Subject>)> {
    let build = |contender: Contender| {
        let counting = contender.favourite();
        (
            contender,
            contender.build(&Terms {
                limit,
                window: DAY,
                counting,
                keys,
            }),
        )
    };
    Contender::ALL.into_iter().map(build).collect()
}

fn sample_all(
    sizes: &Sizes,
    subjects: &[(Contender, Box<dyn Subject>)],
    keys: u64,
) -> Vec<(Contender, Statistic)> {
    let statistics = speed::interleave(subjects, sizes.rounds, |(_, subject), round| {
        speed::sample(&[subject.as_ref()], keys, round, sizes.budget).nanos_each()
    });
    subjects
        .iter()
        .map(|(contender, _)| *contender)
        .zip(statistics)
        .collect()
}

fn spoken(number: u64) -> String {
    match number {
        millions if millions >= 1_000_000 => format!("{} M", millions / 1_000_000),
        thousands => format!("{} k", thousands / 1_000),
    }
}

// === impl Sizes ===

impl Sizes {
    const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Full => Self {
                rounds: 9,
                budget: Duration::from_millis(250),
                keys: 1_000_000,
                growth: 10_000_000,
                logs: 30_000,
                sub_windows: 200_000,
                flood: 100_000_000,
            },
            Scale::Quick => Self {
                rounds: 3,
                budget: Duration::from_millis(5),
                keys: 5_000,
                growth: 50_000,
                logs: 50,
                sub_windows: 1_000,
                flood: 500_000,
            },
        }
    }
}

// === impl Pair ===

impl Pair {
    fn build(contender: Contender, arrangement: Arrangement, keys: u64) -> Self {
        let terms = Terms {
            limit: 1_000,
            window: DAY,
            counting: contender.favourite(),
            keys,
        };
        let subjects = [contender.build(&terms), contender.build(&terms)];
        let used = match arrangement {
            Arrangement::Together => 1,
            Arrangement::Apart => 2,
        };
        for subject in &subjects[..used] {
            speed::fill(subject.as_ref(), keys);
        }
        Self {
            contender,
            subjects,
            arrangement,
        }
    }

    /// The subject of each thread.
    fn for_threads(&self) -> [&dyn Subject; 2] {
        let [first, second] = &self.subjects;
        match self.arrangement {
            Arrangement::Together => [first.as_ref(), first.as_ref()],
            Arrangement::Apart => [first.as_ref(), second.as_ref()],
        }
    }
}
