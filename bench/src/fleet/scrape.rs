//! What a node says of itself.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest page of metrics that is read.
const MOST_BYTES: u64 = 16 << 20;

/// How often something took at most so long, by its upper bound in seconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Vec<(f64, f64)>);

// === impl Histogram ===

impl Histogram {
    /// The histogram of that name on a node's page.
    pub fn scrape(node: SocketAddr, name: &str) -> Result<Self, Box<dyn Error>> {
        let page = page(node)?;
        let prefix = format!("{name}_bucket{{le=\"");
        let mut buckets = Vec::new();
        for line in page.lines() {
            let Some((bound, count)) = line
                .strip_prefix(&prefix)
                .and_then(|it| it.split_once("\"} "))
            else {
                continue;
            };
            let bound = if bound == "+Inf" {
                f64::INFINITY
            } else {
                bound.parse()?
            };
            buckets.push((bound, count.trim().parse()?));
        }
        if buckets.is_empty() {
            return Err(format!("{node} has no {name}").into());
        }
        Ok(Self(buckets))
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.0.iter().zip(&before.0);
        Self(pairs.map(|(now, then)| (now.0, now.1 - then.1)).collect())
    }

    /// The bound, in seconds, that this share of all did not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let all = self.0.last().map_or(0.0, |bucket| bucket.1);
        let found = self.0.iter().find(|bucket| bucket.1 >= all * share);
        found.map_or(f64::INFINITY, |bucket| bucket.0)
    }
}

/// The counter of that name on a node's page, over all its labels.
pub fn counter(node: SocketAddr, name: &str) -> Result<f64, Box<dyn Error>> {
    sum(&page(node)?, name).ok_or_else(|| format!("{node} has no {name}").into())
}

/// The sum of all lines of that name; `None` if there are none, or one is no number.
fn sum(page: &str, name: &str) -> Option<f64> {
    let lines = page.lines().filter_map(|line| line.strip_prefix(name));
    let values = lines.filter(|rest| rest.starts_with(['{', ' ']));
    let numbers = values.map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
    numbers.reduce(|sum, number| Some(sum? + number?))?
}

fn page(node: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(node)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {node}\r\nConnection: close\r\n\r\n"
    )?;
    let mut page = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_it_lies_below() {
        let histogram = Histogram(vec![(0.001, 90.0), (0.01, 99.0), (f64::INFINITY, 100.0)]);
        let check = |share, expected: f64| {
            let quantile = histogram.quantile(share);
            assert_eq!(quantile.to_bits(), expected.to_bits());
        };
        check(0.5, 0.001);
        check(0.99, 0.01);
        check(1.0, f64::INFINITY);
    }

    #[test]
    fn a_counter_is_the_sum_of_its_labels() {
        let page =
            "# TYPE calls counter\ncalls{server=\"a b\"} 3\ncalls{server=\"c\"} 4\ncalls_of 9\n";
        assert_eq!(sum(page, "calls"), Some(7.0));
        assert_eq!(sum(page, "call"), None);
    }

    #[test]
    fn what_came_before_is_left_out() {
        let before = Histogram(vec![(0.001, 90.0), (f64::INFINITY, 100.0)]);
        let after = Histogram(vec![(0.001, 90.0), (f64::INFINITY, 200.0)]);
        assert!(after.since(&before).quantile(0.5).is_infinite());
    }
}
