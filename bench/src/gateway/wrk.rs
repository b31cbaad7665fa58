//! Load by wrk: a closed loop over connections that stay open.

use std::error::Error;
use std::process::Command;

use super::contenders::ANSWER;
use super::program::{Folder, Program, missing};

/// The script that makes requests.
const SCRIPT: &str = include_str!("callers.lua");

/// Connections to the proxy.
const CONNECTIONS: u32 = 64;

/// The callers of a load.
#[derive(Clone, Copy)]
pub enum Callers {
    /// One.
    Same,
    /// This many, at random.
    Random(u64),
}

/// The answer that every request must get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The upstream's.
    Allowed,
    /// 429, except for the first of a caller.
    Denied,
}

/// A load and its length.
#[derive(Clone, Copy)]
pub struct Load {
    /// Its callers.
    pub callers: Callers,
    /// The answer to its requests.
    pub expected: Expected,
    /// Its length.
    pub seconds: u32,
}

/// The totals of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Thousands of requests a second.
    pub thousands_per_second: f64,
    /// Seconds of user and system time that the proxy takes for a million requests.
    pub cpu_seconds: f64,
}

/// The line that the script prints.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Totals {
    requests: f64,
    micros: f64,
    bytes: f64,
    not_ok: f64,
    failed: f64,
}

// === impl Load ===

impl Load {
    /// Puts the load on `proxy`.
    pub fn run(self, proxy: &Program, seed: u64) -> Result<Sample, Box<dyn Error>> {
        let folder = Folder::create()?;
        let script = folder.write("callers.lua", SCRIPT)?;
        let mut wrk = Command::new("wrk");
        wrk.args(["--threads", "1", "--connections", &CONNECTIONS.to_string()])
            .args(["--duration", &self.seconds.to_string()])
            .arg("--script")
            .arg(script)
            .args([&format!("http://{}/", proxy.address), "--"])
            .args(self.callers.words(seed));
        let before = proxy.cpu_seconds()?;
        let output = wrk.output().map_err(|error| missing(&wrk, &error))?;
        let cpu_seconds = proxy.cpu_seconds()? - before;
        let totals = Totals::parse(&String::from_utf8_lossy(&output.stdout))?;
        totals.check(self.expected)?;
        Ok(Sample {
            thousands_per_second: totals.requests / totals.micros * 1e3,
            cpu_seconds: cpu_seconds / totals.requests * 1e6,
        })
    }
}

// === impl Callers ===

impl Callers {
    fn words(self, seed: u64) -> Vec<String> {
        match self {
            Self::Same => vec!["same".to_owned()],
            Self::Random(count) => {
                vec!["random".to_owned(), count.to_string(), seed.to_string()]
            }
        }
    }
}

// === impl Totals ===

impl Totals {
    fn parse(output: &str) -> Result<Self, Box<dyn Error>> {
        let mut lines = output.lines();
        let line = lines.find_map(|line| line.strip_prefix("totals "));
        let words = line.ok_or("wrk prints no totals")?.split_whitespace();
        let numbers: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>()?;
        let [requests, micros, bytes, not_ok, failed] = numbers[..] else {
            return Err("wrk prints other totals".into());
        };
        Ok(Self {
            requests,
            micros,
            bytes,
            not_ok,
            failed,
        })
    }

    /// Rejects a run in which the proxy did something else than it was measured for.
    fn check(self, expected: Expected) -> Result<(), Box<dyn Error>> {
        let is_right = match expected {
            Expected::Allowed => self.not_ok == 0.0 && self.bytes >= self.requests * ANSWER as f64,
            // A request that is due again passes: one at the start and one each minute.
            Expected::Denied => self.not_ok + 3.0 >= self.requests,
        };
        if self.requests > 0.0 && self.failed == 0.0 && is_right {
            Ok(())
        } else {
            Err(format!("the proxy gave other answers than it must: {self:?}").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(totals: &str, expected: Expected, is_right: bool) {
        let totals = Totals::parse(&format!("Running ...\ntotals {totals}\n"));
        let checked = totals.and_then(|totals| totals.check(expected));
        assert_eq!(checked.is_ok(), is_right);
    }

    #[test]
    fn only_the_expected_answers_count() {
        check("100 2000000 120000 0 0", Expected::Allowed, true);
        check("100 2000000 120000 1 0", Expected::Allowed, false);
        check("100 2000000 120000 0 1", Expected::Allowed, false);
        check("100 2000000 20000 0 0", Expected::Allowed, false);
        check("0 2000000 0 0 0", Expected::Allowed, false);
        check("100 2000000 20000 99 0", Expected::Denied, true);
        check("100 2000000 20000 50 0", Expected::Denied, false);
        check("100", Expected::Denied, false);
    }
}
