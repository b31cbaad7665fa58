//! The median of some samples, and how far they spread.

use std::fmt;

/// What is told of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

// === impl Statistic ===

impl Statistic {
    /// Of at least one sample.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: sorted[sorted.len() / 2],
            least: sorted[0],
            greatest: sorted[sorted.len() - 1],
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", figures(self.median))?;
        if self.least < self.greatest {
            write!(f, " ({}–{})", figures(self.least), figures(self.greatest))?;
        }
        Ok(())
    }
}

/// Three figures or so: more would claim what the machine does not give.
pub fn figures(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_spread_are_told() {
        let statistic = Statistic::of(&[31.0, 130.0, 30.0]);
        assert_eq!(statistic.to_string(), "31.0 (30.0–130)");
    }

    #[test]
    fn a_lone_sample_has_no_spread() {
        assert_eq!(Statistic::of(&[0.5]).to_string(), "0.50");
    }
}
