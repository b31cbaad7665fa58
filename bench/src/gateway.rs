//! The gateway beside nginx and `HAProxy`, in front of the same upstream: the processor's time of a proxied request, its latency, and
//! the memory of a connection.

mod bare;
mod contenders;
mod cores;
mod http1;
mod idle;
mod instructions;
mod open_loop;
mod program;
mod wrk;

use std::error::Error;
use std::time::Duration;

use crate::arguments::Scale;
use crate::service::Noise;
use crate::statistic::Statistic;
use crate::table::{About, Aim, Bound, Row, Table};
pub use bare::{BARE_SERVER, BareServer};
use contenders::{
    Certificate, ForwardedHeaders, Limits, Protocol, haproxy, nginx, tidegate, upstream,
};
use cores::TwoCores;
use idle::IdleConnections;
use instructions::ProxiedGets;
use open_loop::FixedRate;
use program::Program;
use wrk::{Callers, Expected, Load, Sample};

/// The start of its section, by which it is found in a page.
pub const HEADING: &str = "# The gateway\n";

const METHOD: &str = "
Written by `scripts/bench --only gateway --write`. Clients reach one upstream (nginx, which answers 1 KB from memory) through a proxy
with one worker thread: `tidegate serve --upstream` of this commit, or Debian's nginx or HAProxy, as the row says. All proxies keep
connections to the upstream open, speak HTTP/1.1 on both sides, tell the upstream the same about the client (`X-Forwarded-For`, `-Proto` and
`-Host`, `Forwarded`, `Via`; one nginx beside sets only the first) and write no access log. Load is by wrk: one
thread, 64 connections that stay open, 2 s a round. Processor time is user and system time of the proxy's process, by the scheduler's
count, for a million requests. *Without limits* the gateway has `descriptors: []`. *A token bucket* is one for each of a million callers by the
header `X-User`, 1,000 a second, against `limit_req` of nginx (burst 1,000, `nodelay`) on the same header; each caller has been there
once before, callers come at random, all are allowed. *Denied* is one caller that is over its limit: 429 with `X-RateLimit-*`,
`Retry-After` and problem+json, against `limit_req_status 429` of nginx with its own page. User instructions are callgrind's, of one
GET over one connection: of 1,200 the first 200 do not count; the recorder looks at the first 1,000 of a window for the busiest callers,
and at a few after them. What a rule adds is the difference to the same gateway whose rules have none for its descriptor. *Beside* is tidegate
without limits. Latency is measured by an open
loop of our own over 64 connections, without limits: requests begin when they are due, and the latency counts from then. *A core for the
proxy*: the load and the upstream share the other one; *placed by the kernel*: the upstream often runs beside the proxy, and waits for it. Memory is the
growth of the resident set over 10,000 idle connections, each after one GET, of new processes; *beside* is a bare hyper server with a
`header_read_timeout`. tidegate takes a connection from hyper after its first GET, until the next one begins; a client with GETs less than a second
apart has its buffers for a second or two longer. Seven rounds, proxies interleaved (A B, B A, …), three of memory and one of instructions: the median, with the
least and the greatest in brackets; a ratio is the median of the ratios of each round.

";

const ABOUT: About = About {
    heading: HEADING,
    method: METHOD,
    beside: "beside",
};

/// The size of each measurement.
struct Sizes {
    rounds: usize,
    /// Seconds of one load by wrk.
    seconds: u32,
    /// Seconds of the first load on each proxy, which does not count.
    warmup: u32,
    callers: u64,
    gets: ProxiedGets,
    /// The open loop before latencies count, and the time in which they count.
    fixed_rate: [Duration; 2],
    idle: IdleConnections,
}

/// Proxies under the same load, and the samples of each, round by round.
struct Comparison {
    proxies: Vec<Program>,
    samples: Vec<Vec<Sample>>,
}

/// Measures the whole table.
pub fn run(scale: Scale) -> Result<Table, Box<dyn Error>> {
    let sizes = Sizes::of(scale);
    let noise = Noise::begin(&[])?;
    let upstream = upstream()?;
    let mut rows = sizes.without_limits(&upstream)?;
    rows.splice(3..3, sizes.instructions(&upstream)?);
    rows.splice(3..3, sizes.with_limits(&upstream)?);
    rows.extend(sizes.memory(&upstream)?);
    // Only programs that have ended count as ours.
    drop(upstream);
    Ok(Table::new(ABOUT, rows, noise.others(&[])?, scale))
}

// === impl Sizes ===

impl Sizes {
    const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Full => Self {
                rounds: 7,
                seconds: 2,
                warmup: 1,
                callers: 1_000_000,
                gets: ProxiedGets {
                    warmup: 200,
                    counted: 1_000,
                },
                fixed_rate: [Duration::from_millis(500), Duration::from_secs(2)],
                idle: IdleConnections {
                    count: 10_000,
                    rounds: 3,
                },
            },
            Scale::Quick => Self {
                rounds: 1,
                seconds: 1,
                warmup: 0,
                callers: 2_000,
                gets: ProxiedGets {
                    warmup: 20,
                    counted: 20,
                },
                fixed_rate: [Duration::from_millis(20), Duration::from_millis(100)],
                idle: IdleConnections {
                    count: 100,
                    rounds: 1,
                },
            },
        }
    }

    /// Plain proxying: processor, rate and latency.
    fn without_limits(&self, upstream: &Program) -> Result<Vec<Row>, Box<dyn Error>> {
        eprintln!("gateway: without limits ...");
        let address = upstream.address;
        let mut comparison = Comparison::of(vec![
            nginx(address, Limits::None, ForwardedHeaders::AsTidegate)?,
            nginx(address, Limits::None, ForwardedHeaders::AddressAlone)?,
            haproxy(address)?,
            tidegate(address, Limits::None)?,
        ]);
        let load = self.load(Callers::Same, Expected::Allowed);
        comparison.run(load, self)?;
        let [nginx, simple_nginx, haproxy, ours] =
            [0, 1, 2, 3].map(|at| comparison.cpu_seconds(at));
        let rates = [0, 3].map(|at| comparison.rates(at));
        let slower = rates.iter().map(|rates| Statistic::of(rates).median);
        let per_second = slower.fold(f64::INFINITY, f64::min) * 1e3 / 2.0;
        let mut rows =
            vec![
                cpu_row("proxying without limits, nginx beside", &nginx, &ours)
                    .aiming(Aim::on_ratio(Bound::AtMost, 1.45, 1.35)),
                cpu_row(
                    "the same, nginx that sets X-Forwarded-For alone beside",
                    &simple_nginx,
                    &ours,
                ),
                cpu_row("the same, HAProxy beside", &haproxy, &ours),
                Row::pair(
                    "requests without limits, closed loop, nginx beside",
                    "k/s",
                    &rates[0],
                    &rates[1],
                ),
            ];
        let [nginx, _, _, tidegate] = &comparison.proxies[..] else {
            return Err("four proxies were started".into());
        };
        eprintln!("gateway: latency at {per_second:.0} a second ...");
        let cores = TwoCores::first()?;
        let proxies = [nginx, tidegate];
        let [p50, p99] = self.latency(upstream, proxies, per_second, Some(&cores))?;
        rows.push(p50.aiming(Aim::on_ratio(Bound::AtMost, 1.3, 1.1)));
        rows.push(p99);
        rows.extend(self.latency(upstream, proxies, per_second, None)?);
        Ok(rows)
    }

    /// Latencies at a fixed rate, with a core for the proxy or without.
    fn latency(
        &self,
        upstream: &Program,
        proxies: [&Program; 2],
        per_second: f64,
        cores: Option<&TwoCores>,
    ) -> Result<[Row; 2], Box<dyn Error>> {
        let [warmup, duration] = self.fixed_rate;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates"
        )]
        let load = FixedRate {
            per_second: (per_second as u32).max(1),
            warmup,
            duration,
        };
        let mut latencies = [Vec::new(), Vec::new()];
        for round in 0..self.rounds {
            for at in in_turn(round, 2) {
                let placed = cores.map(|cores| cores.place(upstream, proxies[at]));
                let _placement = placed.transpose()?;
                latencies[at].push(load.run(proxies[at].address)?);
            }
        }
        let row = |hundredths: usize| {
            let [beside, ours] = latencies.each_ref().map(|rounds| {
                let each = rounds.iter().map(|round| round.percentile(hundredths));
                each.collect::<Vec<_>>()
            });
            let thousands = per_second / 1e3;
            let place = match cores {
                Some(_) => "a core for the proxy",
                None => "placed by the kernel",
            };
            let what = format!("p{hundredths} at {thousands:.1} k/s, {place}, nginx beside");
            Row::pair(&what, "µs", &beside, &ours)
        };
        Ok([row(50), row(99)])
    }

    /// Limits that allow, and limits that deny.
    fn with_limits(&self, upstream: &Program) -> Result<[Row; 2], Box<dyn Error>> {
        eprintln!("gateway: {} callers ...", self.callers);
        let random = self.load(Callers::Random(self.callers), Expected::Allowed);
        let mut allowing = Comparison::start(upstream, Limits::PerCaller)?;
        for proxy in &allowing.proxies {
            http1::get_each(proxy.address, self.callers)?;
        }
        allowing.run(random, self)?;
        eprintln!("gateway: denials ...");
        let mut denying = Comparison::start(upstream, Limits::Denying)?;
        let same = self.load(Callers::Same, Expected::Denied);
        denying.run(same, self)?;
        let row = |what, comparison: &Comparison| {
            cpu_row(what, &comparison.cpu_seconds(0), &comparison.cpu_seconds(1))
        };
        Ok([
            row(
                "a token bucket each for 1 M callers, nginx beside",
                &allowing,
            )
            .aiming(Aim::on_ratio(Bound::AtMost, 1.5, 1.3)),
            row("denied (429), nginx beside", &denying).aiming(Aim::on_ratio(
                Bound::AtMost,
                1.5,
                1.2,
            )),
        ])
    }

    /// The instructions that limiting adds.
    fn instructions(&self, upstream: &Program) -> Result<[Row; 4], Box<dyn Error>> {
        eprintln!("gateway: instructions ...");
        let measure = |limits| self.gets.measure(upstream.address, limits);
        let without = measure(Limits::None)?;
        let without_rule = measure(Limits::NoRule)?;
        let with_rule = measure(Limits::PerAddress)?;
        let added = |what, with: f64, without: f64| {
            Row::of_tidegate(what, "instructions", Statistic::of(&[with - without]))
        };
        Ok([
            Row::pair(
                "user instructions of a proxied GET, without limits beside",
                "instructions",
                &[without.first],
                &[with_rule.first],
            ),
            added(
                "of these, added by a rule for each client address",
                with_rule.first,
                without_rule.first,
            ),
            added(
                "the same after the first 1,000 GETs of a window",
                with_rule.later,
                without_rule.later,
            ),
            added(
                "added by the rule and by its descriptor",
                with_rule.first,
                without.first,
            )
            .aiming(Aim::on_tidegate(Bound::AtMost, 4_500.0, 3_000.0)),
        ])
    }

    /// The memory of idle connections.
    fn memory(&self, upstream: &Program) -> Result<Vec<Row>, Box<dyn Error>> {
        let certificate = Certificate::generate()?;
        let mut rows = Vec::new();
        for (protocol, name) in [
            (Protocol::Http1, "HTTP/1"),
            (Protocol::Tls, "HTTP/1 over TLS"),
            (Protocol::Http2, "HTTP/2"),
        ] {
            eprintln!("gateway: idle connections, {name} ...");
            let memory = self
                .idle
                .measure(protocol, upstream.address, &certificate)?;
            let what = format!("memory of an idle {name} connection, bare hyper beside");
            rows.push(Row::pair(&what, "KB", &memory.bare, &memory.tidegate));
            if protocol == Protocol::Http1 {
                let added = Statistic::of(&memory.added());
                rows.push(
                    Row::of_tidegate("more than bare hyper's", "KB", added)
                        .aiming(Aim::on_tidegate(Bound::AtMost, 2.0, 0.5)),
                );
            }
        }
        Ok(rows)
    }

    const fn load(&self, callers: Callers, expected: Expected) -> Load {
        Load {
            callers,
            expected,
            seconds: self.seconds,
        }
    }
}

// === impl Comparison ===

impl Comparison {
    fn of(proxies: Vec<Program>) -> Self {
        let samples = proxies.iter().map(|_| Vec::new()).collect();
        Self { proxies, samples }
    }

    /// nginx and tidegate with those limits.
    fn start(upstream: &Program, limits: Limits) -> Result<Self, Box<dyn Error>> {
        let address = upstream.address;
        Ok(Self::of(vec![
            nginx(address, limits, ForwardedHeaders::AsTidegate)?,
            tidegate(address, limits)?,
        ]))
    }

    /// Puts the load on each proxy in turn: A B, B A, and so on. The first load on each does not count.
    fn run(&mut self, load: Load, sizes: &Sizes) -> Result<(), Box<dyn Error>> {
        let seconds = sizes.warmup;
        for proxy in self.proxies.iter().filter(|_| seconds > 0) {
            Load { seconds, ..load }.run(proxy, 0)?;
        }
        for round in 0..sizes.rounds {
            for at in in_turn(round, self.proxies.len()) {
                let sample = load.run(&self.proxies[at], 1 + round as u64)?;
                self.samples[at].push(sample);
            }
        }
        Ok(())
    }

    fn cpu_seconds(&self, at: usize) -> Vec<f64> {
        let samples = self.samples[at].iter();
        samples.map(|sample| sample.cpu_seconds).collect()
    }

    fn rates(&self, at: usize) -> Vec<f64> {
        let samples = self.samples[at].iter();
        samples.map(|sample| sample.thousands_per_second).collect()
    }
}

/// The order of a round.
fn in_turn(round: usize, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn cpu_row(what: &str, beside: &[f64], ours: &[f64]) -> Row {
    let what = format!("processor of a million requests, {what}");
    Row::pair(&what, "s", beside, ours)
}
