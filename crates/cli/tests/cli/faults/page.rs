//! The page of metrics, as a scraper reads it.

use std::collections::BTreeSet;

/// The page at one moment.
#[derive(Debug)]
pub(crate) struct Page(String);

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

    /// The labels and the value of each series of a metric.
    fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            (labels.is_empty() || labels.starts_with('{')).then_some((labels, value))
        })
    }
}
