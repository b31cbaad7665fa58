//! A table of figures with what each must reach.

use std::fmt::Write;

use crate::arguments::Scale;
use crate::statistic::{Statistic, figures};

/// All rows, in Markdown when shown.
pub struct Table {
    about: About,
    rows: Vec<Row>,
    /// How many cores other programs had meanwhile.
    others: f64,
    scale: Scale,
}

/// One row: the figure of what stands beside us, ours, and ours over that.
pub struct Row {
    what: String,
    unit: &'static str,
    beside: Option<Statistic>,
    tidegate: Option<Statistic>,
    ratio: Option<Statistic>,
    aim: Option<Aim>,
}

/// What a row must reach, and what it reaches for.
#[derive(Clone, Copy)]
pub struct Aim {
    bound: Bound,
    must: f64,
    wish: f64,
    on: On,
}

/// Which way an aim lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// No more than this.
    AtMost,
    /// No less than this.
    AtLeast,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Ratio,
    Tidegate,
}

/// The ratios of all rounds.
pub struct Ratios(Vec<f64>);

/// What a table is about.
#[derive(Clone, Copy)]
pub struct About {
    /// How its section begins, by which it is found in a page.
    pub heading: &'static str,
    /// How it was measured.
    pub method: &'static str,
    /// The title of what stands beside us.
    pub beside: &'static str,
}

// === impl Table ===

impl Table {
    pub const fn new(about: About, rows: Vec<Row>, others: f64, scale: Scale) -> Self {
        Self {
            about,
            rows,
            others,
            scale,
        }
    }

    /// The section of the page, with the machine it was measured on.
    pub fn section(&self, machine: &str) -> String {
        let About {
            heading,
            method,
            beside,
        } = self.about;
        let mut section = format!("{heading}\nMachine: {machine}.\n{method}");
        if self.scale == Scale::Quick {
            section.push_str(
                "**A quick run: it shows that everything works; the figures mean nothing.**\n\n",
            );
        }
        let others = figures(self.others);
        let _ = writeln!(
            section,
            "Other programs had {others} of the cores meanwhile.\n"
        );
        let _ = writeln!(
            section,
            "| what | unit | {beside} | tidegate | ratio | must reach | reach for | reached |"
        );
        section.push_str("|---|---|---|---|---|---|---|---|\n");
        for row in &self.rows {
            // Whether an aim is reached shows at full size only.
            let aim = row.aim.filter(|_| self.scale == Scale::Full);
            let _ = writeln!(section, "{}", row.line(aim));
        }
        section
    }
}

// === impl Row ===

impl Row {
    /// A figure of both, round by round.
    pub fn pair(what: &str, unit: &'static str, beside: &[f64], tidegate: &[f64]) -> Self {
        Self {
            beside: Some(Statistic::of(beside)),
            tidegate: Some(Statistic::of(tidegate)),
            ratio: Some(Statistic::of(&Self::ratio(beside, tidegate).0)),
            ..Self::empty(what, unit)
        }
    }

    /// A figure of ours alone.
    pub fn of_tidegate(what: &str, unit: &'static str, tidegate: Statistic) -> Self {
        Self {
            tidegate: Some(tidegate),
            ..Self::empty(what, unit)
        }
    }

    /// A ratio alone.
    pub fn of_ratio(what: &str, ratios: &Ratios) -> Self {
        Self {
            ratio: Some(Statistic::of(&ratios.0)),
            ..Self::empty(what, "×")
        }
    }

    /// What one figure is of another, in each round.
    pub fn ratio(of: &[f64], figures: &[f64]) -> Ratios {
        let pairs = figures.iter().zip(of);
        Ratios(pairs.map(|(figure, of)| figure / of).collect())
    }

    /// The same row with an aim.
    #[must_use]
    pub fn aiming(self, aim: Aim) -> Self {
        Self {
            aim: Some(aim),
            ..self
        }
    }

    fn empty(what: &str, unit: &'static str) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            beside: None,
            tidegate: None,
            ratio: None,
            aim: None,
        }
    }

    fn line(&self, aim: Option<Aim>) -> String {
        let shown = |cell: Option<Statistic>| cell.map_or_else(String::new, |it| it.to_string());
        let goal = |value: fn(&Aim) -> f64| {
            aim.map_or_else(String::new, |aim| aim.words(value(&aim), self.unit))
        };
        let cells = [
            self.what.clone(),
            self.unit.to_owned(),
            shown(self.beside),
            shown(self.tidegate),
            shown(self.ratio),
            goal(|aim| aim.must),
            goal(|aim| aim.wish),
            aim.map_or_else(String::new, |aim| self.reached(aim).to_owned()),
        ];
        format!("| {} |", cells.join(" | "))
    }

    fn reached(&self, aim: Aim) -> &'static str {
        let figure = match aim.on {
            On::Ratio => self.ratio,
            On::Tidegate => self.tidegate,
        };
        match figure.map(|figure| figure.median) {
            Some(figure) if aim.bound.admits(figure, aim.wish) => "yes, both",
            Some(figure) if aim.bound.admits(figure, aim.must) => "what it must",
            Some(_) => "**no**",
            None => "",
        }
    }
}

// === impl Aim ===

impl Aim {
    /// On the ratio.
    pub const fn on_ratio(bound: Bound, must: f64, wish: f64) -> Self {
        let on = On::Ratio;
        Self {
            bound,
            must,
            wish,
            on,
        }
    }

    /// On our own figure.
    pub const fn on_tidegate(bound: Bound, must: f64, wish: f64) -> Self {
        let on = On::Tidegate;
        Self {
            bound,
            must,
            wish,
            on,
        }
    }

    fn words(self, value: f64, unit: &str) -> String {
        let sign = match self.bound {
            Bound::AtMost => "≤",
            Bound::AtLeast => "≥",
        };
        match self.on {
            On::Ratio => format!("{sign} {} ×", figures(value)),
            On::Tidegate => format!("{sign} {value} {unit}"),
        }
    }
}

// === impl Bound ===

impl Bound {
    fn admits(self, figure: f64, bound: f64) -> bool {
        match self {
            Self::AtMost => figure <= bound,
            Self::AtLeast => figure >= bound,
        }
    }
}

// === impl Ratios ===

impl Ratios {
    /// Each of them changed.
    #[must_use]
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|&ratio| change(ratio)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About {
        heading: "# A table\n",
        method: "",
        beside: "floor",
    };

    #[test]
    fn a_row_says_what_it_reached() {
        let check = |beside, tidegate, expected| {
            let aim = Aim::on_ratio(Bound::AtMost, 1.6, 1.25);
            let row = Row::pair("time", "µs", &[beside], &[tidegate]).aiming(aim);
            assert_eq!(row.reached(aim), expected);
        };
        check(4.0, 5.0, "yes, both");
        check(4.0, 6.0, "what it must");
        check(4.0, 7.0, "**no**");
    }

    #[test]
    fn a_ratio_is_that_of_each_round() {
        let row = Row::pair("time", "µs", &[1.0, 2.0, 4.0], &[2.0, 8.0, 4.0]);
        assert_eq!(row.ratio.map(|ratio| ratio.median), Some(2.0));
    }

    #[test]
    fn every_line_has_as_many_cells_as_the_header() {
        let row = Row::of_ratio("time", &Row::ratio(&[1.0], &[2.0]));
        let section = Table::new(ABOUT, vec![row], 0.0, Scale::Quick).section("here");
        let mut lines = section.lines().rev().take(3);
        let cells = |line: Option<&str>| line.map(|line| line.matches('|').count());
        let (row, rule, titles) = (lines.next(), lines.next(), lines.next());
        assert_eq!(cells(row), cells(titles));
        assert_eq!(cells(rule), cells(titles));
    }
}
