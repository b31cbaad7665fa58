//! The page of metrics, as a scraper reads it.

use std::collections::BTreeSet;

/// The page at one moment.
#[derive(Debug)]
pub(crate) struct Page(String);

/// The histogram of decisions: an upper bound in seconds, and how many took no longer.
#[derive(Debug)]
pub(crate) struct Durations(Vec<(f64, u64)>);

// === impl Page ===

impl Page {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The sum of the series of one metric that have `label`.
    #[track_caller]
    pub(crate) fn sum(&self, name: &str, label: &str) -> u64 {
        let number = |value: &str| value.parse::<u64>().unwrap();
        self.values(name, label).map(number).sum()
    }

    /// By how much that sum has grown since `before`.
    #[track_caller]
    pub(crate) fn growth(&self, before: &Self, name: &str, label: &str) -> u64 {
        self.sum(name, label) - before.sum(name, label)
    }

    /// The values of the series of one metric that have `label`.
    pub(crate) fn values<'a>(
        &'a self,
        name: &'a str,
        label: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let series = self.series(name);
        series.filter_map(move |(labels, value)| labels.contains(label).then_some(value))
    }

    /// All that one label of a metric says.
    pub(crate) fn labels<'a>(&'a self, name: &'a str, label: &str) -> BTreeSet<&'a str> {
        let series = self.series(name);
        let of_series = series.filter_map(|(labels, _)| {
            let (_, rest) = labels.split_once(label)?;
            Some(rest.strip_prefix("=\"")?.split_once('"')?.0)
        });
        of_series.collect()
    }

    /// How long decisions took.
    pub(crate) fn durations(&self) -> Durations {
        let bucket = |(labels, count): (&str, &str)| {
            let bound = labels.strip_prefix("{le=\"")?.strip_suffix("\"}")?;
            let bound = bound.replace("+Inf", "inf").parse().unwrap();
            Some((bound, count.parse().unwrap()))
        };
        let buckets = self.series("tidegate_decision_duration_seconds_bucket");
        Durations(buckets.filter_map(bucket).collect())
    }

    /// The labels and the value of each series of a metric.
    fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            (labels.is_empty() || labels.starts_with('{')).then_some((labels, value))
        })
    }
}

// === impl Durations ===

impl Durations {
    /// The bound that so many of a hundred were within.
    pub(crate) fn within(&self, of_hundred: u64) -> f64 {
        let (_, total) = self.0.last().unwrap();
        assert!(*total > 0, "nothing was decided");
        let is_within = |(_, count): &&(f64, u64)| *count * 100 >= *total * of_hundred;
        self.0.iter().find(is_within).unwrap().0
    }
}
