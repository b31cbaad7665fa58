//! The table.

use std::fmt::Write;

use crate::arguments::Scale;
use crate::contender::Contender;
use crate::machine;
use crate::statistic::{Statistic, figures};

/// One row: what was measured, of whom.
pub struct Row {
    what: String,
    unit: &'static str,
    cells: Vec<(Contender, Statistic)>,
    goal: Option<Goal>,
}

/// What the row's first figure, that of our store, must reach.
#[derive(Clone, Copy)]
pub struct Goal {
    bound: Bound,
    measure: Measure,
}

/// Which way a goal lies.
#[derive(Clone, Copy)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Itself,
    RatioToGovernor,
}

/// The whole page, in Markdown.
pub fn page(rows: &[Row], scale: Scale) -> String {
    let mut page = String::from("# Benchmark results\n\n");
    page.push_str("Written by `scripts/bench --write`; what it measures is in `bench/src`.\n\n");
    if scale == Scale::Quick {
        page.push_str(
            "**A quick run: it shows that everything works; the figures mean nothing.**\n\n",
        );
    }
    let _ = writeln!(page, "Machine: {}.\n", machine::description());
    page.push_str(METHOD);
    page.push_str(&header());
    for row in rows {
        // Whether a goal is reached shows at full size only.
        let goal = row.goal.filter(|_| scale == Scale::Full);
        page.push_str(&row.line(goal));
    }
    page
}

const METHOD: &str = "\
Times are the median of nine runs with the least and the greatest in brackets; the runs of all
contenders are interleaved (A B, B A, …). A decision includes the clock and whatever the contender
has to build to ask; making the 32 hexadecimal digits of the key is not included, they are the same
for all. All requests are allowed. Memory is measured in a process of its own for each contender:
*resident* is the growth of the resident set, *taken* what was asked of the allocator (our store
reserves addresses and takes memory step by step, there it is what it took). The worst point is
looked for at every hundredth more keys. With two threads each draws from all keys, be the table one
or one each.

";

fn header() -> String {
    let titles: Vec<&str> = Contender::ALL
        .iter()
        .map(|contender| contender.title())
        .collect();
    let columns = titles.len() + 5;
    format!(
        "| what | unit | {} | store ÷ governor | must reach | reached |\n|{}\n",
        titles.join(" | "),
        "---|".repeat(columns),
    )
}

// === impl Row ===

impl Row {
    /// A row without a goal.
    pub fn new(what: &str, unit: &'static str, cells: Vec<(Contender, Statistic)>) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            cells,
            goal: None,
        }
    }

    /// The same row with a goal.
    #[must_use]
    pub fn aiming(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    fn median(&self, contender: Contender) -> Option<f64> {
        self.cells
            .iter()
            .find(|(each, _)| *each == contender)
            .map(|(_, cell)| cell.median)
    }

    fn ratio_to_governor(&self) -> Option<f64> {
        Some(self.median(Contender::Store)? / self.median(Contender::Governor)?)
    }

    fn line(&self, goal: Option<Goal>) -> String {
        let cell = |contender: Contender| {
            let found = self.cells.iter().find(|(each, _)| *each == contender);
            found.map_or_else(String::new, |(_, statistic)| statistic.to_string())
        };
        let cells = Contender::ALL.map(cell);
        let ratio = self.ratio_to_governor().map(figures).unwrap_or_default();
        let reached = goal.and_then(|goal| self.reached(goal)).unwrap_or_default();
        let goal = goal.map(|goal| goal.words(self.unit)).unwrap_or_default();
        let (what, unit) = (&self.what, self.unit);
        format!(
            "| {what} | {unit} | {} | {ratio} | {goal} | {reached} |\n",
            cells.join(" | ")
        )
    }

    fn reached(&self, goal: Goal) -> Option<&'static str> {
        let value = match goal.measure {
            Measure::Itself => self.median(Contender::Store)?,
            Measure::RatioToGovernor => self.ratio_to_governor()?,
        };
        Some(if goal.bound.admits(value) {
            "yes"
        } else {
            "**no**"
        })
    }
}

// === impl Goal ===

impl Goal {
    /// On the figure itself.
    pub const fn alone(bound: Bound) -> Self {
        Self {
            bound,
            measure: Measure::Itself,
        }
    }

    /// On the figure over governor's.
    pub const fn to_governor(bound: Bound) -> Self {
        Self {
            bound,
            measure: Measure::RatioToGovernor,
        }
    }

    fn words(self, unit: &str) -> String {
        let (sign, value) = match self.bound {
            Bound::AtMost(value) => ("≤", value),
            Bound::AtLeast(value) => ("≥", value),
        };
        match self.measure {
            Measure::Itself => format!("{sign} {value} {unit}"),
            Measure::RatioToGovernor => format!("{sign} {value} × governor"),
        }
    }
}

// === impl Bound ===

impl Bound {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, governors: f64) -> Row {
        let cells = [(Contender::Store, ours), (Contender::Governor, governors)];
        let cells = cells.map(|(contender, value)| (contender, Statistic::of(&[value])));
        Row::new("time", "ns", cells.into())
    }

    #[test]
    fn goals_are_held_against_the_figure_or_the_ratio() {
        let check = |ours, goal, expected| {
            assert_eq!(row(ours, 60.0).reached(goal), Some(expected));
        };
        check(30.0, Goal::to_governor(Bound::AtMost(0.5)), "yes");
        check(31.0, Goal::to_governor(Bound::AtMost(0.5)), "**no**");
        check(31.0, Goal::alone(Bound::AtLeast(31.0)), "yes");
        check(31.0, Goal::alone(Bound::AtLeast(31.5)), "**no**");
    }

    #[test]
    fn every_line_has_as_many_cells_as_the_header() {
        let cells = |line: &str| line.matches('|').count();
        let header = header();
        let mut lines = header.lines();
        let (titles, rule) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(cells(titles), cells(rule));
        assert_eq!(cells(titles), cells(&row(1.0, 2.0).line(None)));
    }
}
