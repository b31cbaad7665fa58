//! A page in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use super::family::Family;
use crate::histogram::{BOUNDS, Times};

/// A page of metrics.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

/// The series of one metric, as they are written.
pub(crate) struct Series<'p> {
    page: &'p mut Page,
    name: &'static str,
}

/// The name and the value of a label.
pub(crate) type Label<'a> = (&'a str, &'a str);

/// One series of a histogram of times.
pub(crate) struct Buckets<'a> {
    /// The upper bounds in nanoseconds, each with its text in seconds.
    pub(crate) bounds: &'a [(u64, &'static str)],
    /// How many were within each bound and above the one before; the last are above all.
    pub(crate) counts: &'a [u64],
    pub(crate) sum_nanos: u64,
}

/// A time in seconds.
pub(crate) struct Seconds(pub(crate) Duration);

/// A text between the quotes of a label.
struct Escaped<'a>(&'a str);

// === impl Page ===

impl Page {
    /// Begins a metric.
    pub(crate) fn family(&mut self, family: &Family) -> Series<'_> {
        let Family { name, kind, help } = family;
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {}", kind.name()));
        Series { page: self, name }
    }

    /// A metric of one number.
    pub(crate) fn single(&mut self, family: &Family, value: impl Display) {
        self.family(family).add(&[], value);
    }

    /// A histogram of times.
    pub(crate) fn times(&mut self, family: &Family, labels: &[Label<'_>], times: &Times) {
        let buckets = Buckets {
            bounds: &BOUNDS,
            counts: &times.buckets,
            sum_nanos: times.sum_nanos,
        };
        self.family(family).add_buckets(labels, &buckets);
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        self.0.push_str(name);
        self.0.push_str(suffix);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.put(format_args!("{name}=\"{}\"", Escaped(value)));
        }
        self.0.push_str(if labels.is_empty() { " " } else { "} " });
        self.line(format_args!("{value}"));
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        self.put(text);
        self.0.push('\n');
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // A string takes all that is written.
        let _ = self.0.write_fmt(text);
    }
}

// === impl Series ===

impl Series<'_> {
    pub(crate) fn add(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.page.sample(self.name, "", labels, value);
    }

    pub(crate) fn add_buckets(&mut self, labels: &[Label<'_>], buckets: &Buckets<'_>) {
        let mut count = 0_u64;
        let bounds = buckets.bounds.iter().map(|(_, text)| *text);
        for (bound, bucket) in bounds.chain(["+Inf"]).zip(buckets.counts) {
            count = count.wrapping_add(*bucket);
            let mut labels = labels.to_vec();
            labels.push(("le", bound));
            self.page.sample(self.name, "_bucket", &labels, count);
        }
        let sum = Seconds(Duration::from_nanos(buckets.sum_nanos));
        self.page.sample(self.name, "_sum", labels, sum);
        self.page.sample(self.name, "_count", labels, count);
    }
}

// === impl Seconds ===

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}.{:09}",
            self.0.as_secs(),
            self.0.subsec_nanos()
        )
    }
}

// === impl Escaped ===

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '"' => formatter.write_str("\\\"")?,
                '\n' => formatter.write_str("\\n")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        let family = Family::counter("n_total", "Help.");
        let value = "a\\b\"c\nd";
        page.family(&family).add(&[("x", value), ("y", "é{}")], 7);
        let expected = "# HELP n_total Help.\n# TYPE n_total counter\n\
            n_total{x=\"a\\\\b\\\"c\\nd\",y=\"é{}\"} 7\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_histogram_adds_up_from_bound_to_bound() {
        let mut times = Times::default();
        times.buckets[0] = 2;
        times.buckets[17] = 1;
        times.sum_nanos = 1_500_000_000;
        let mut page = Page::default();
        page.times(&Family::histogram("t_seconds", "Help."), &[], &times);
        let text = page.into_text();
        assert!(text.contains("t_seconds_bucket{le=\"0.0000005\"} 2\n"));
        assert!(text.contains("t_seconds_bucket{le=\"0.1\"} 2\n"));
        assert!(text.ends_with(
            "t_seconds_bucket{le=\"+Inf\"} 3\nt_seconds_sum 1.500000000\nt_seconds_count 3\n"
        ));
    }
}
