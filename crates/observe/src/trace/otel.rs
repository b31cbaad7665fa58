//! The environment variables of OpenTelemetry, for what tracing needs besides an endpoint.

use std::fmt;
use std::time::Duration;

use super::{Sampling, TraceConfig, TraceHeader};

/// The most spans that may wait, whatever a variable says: some tens of megabytes.
const MOST_SPANS: usize = 65_536;

/// Variables whose values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct OtelError(Vec<Fault>);

/// A variable whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    name: &'static str,
    /// What is wrong with its value, and what to write instead.
    reason: String,
}

/// Reads variables, and notes what is wrong with them.
struct Reader<L> {
    lookup: L,
    faults: Vec<Fault>,
}

// === impl TraceConfig ===

impl TraceConfig {
    /// The same, with what the variables of OpenTelemetry say, which `lookup` finds: headers, timeout,
    /// name and attributes of the service, sampler, and the sizes of queue and batch. A variable that is
    /// empty counts as not there. Where spans go is not among them: that is for the config to say.
    ///
    /// # Errors
    ///
    /// Every variable that is there and cannot be used.
    pub fn with_otel(mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, OtelError> {
        let mut reader = Reader {
            lookup,
            faults: Vec::new(),
        };
        reader.read_identity(&mut self);
        reader.read_sampling(&mut self);
        reader.read_numbers(&mut self);
        if reader.faults.is_empty() {
            Ok(self)
        } else {
            Err(OtelError(reader.faults))
        }
    }
}

// === impl OtelError ===

impl fmt::Display for OtelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Fault { name, reason }) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(formatter, "{between}{name}: {reason}")?;
        }
        Ok(())
    }
}

// === impl Reader ===

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    fn read_identity(&mut self, config: &mut TraceConfig) {
        let names = [
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ];
        if let Some((name, text)) = self.first_of(names) {
            for (key, value) in self.pairs(name, &text) {
                let header = TraceHeader::new(&key, &value);
                config.headers.extend(self.parse(name, header));
            }
        }
        let attributes = "OTEL_RESOURCE_ATTRIBUTES";
        if let Some(text) = self.get(attributes) {
            let pairs = self.pairs(attributes, &text);
            let (names, rest): (Vec<_>, Vec<_>) = pairs
                .into_iter()
                .partition(|(key, _)| key == "service.name");
            config.resource = rest;
            if let Some((_, name)) = names.into_iter().next_back() {
                config.service_name = name;
            }
        }
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            config.service_name = name;
        }
    }

    fn read_sampling(&mut self, config: &mut TraceConfig) {
        let name = "OTEL_TRACES_SAMPLER";
        let sampler = self.get(name);
        match sampler.as_deref() {
            None => {}
            // Whoever comes with a trace decides, whatever is written here.
            Some("always_on" | "parentbased_always_on") => config.sampling = Sampling::ALL,
            Some("always_off" | "parentbased_always_off") => config.sampling = Sampling::NONE,
            Some("traceidratio" | "parentbased_traceidratio") => {
                let argument = "OTEL_TRACES_SAMPLER_ARG";
                let text = self.get(argument).unwrap_or_else(|| "1".to_owned());
                let sampling = Sampling::from_ratio(&text).ok_or("write a ratio from 0 to 1");
                config.sampling = self.parse(argument, sampling).unwrap_or(config.sampling);
            }
            Some(_) => self.fault(
                name,
                "write parentbased_always_on, parentbased_always_off or parentbased_traceidratio",
            ),
        }
    }

    fn read_numbers(&mut self, config: &mut TraceConfig) {
        let names = [
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        ];
        if let Some((name, text)) = self.first_of(names) {
            config.timeout = self.millis(name, &text).unwrap_or(config.timeout);
        }
        let name = "OTEL_BSP_SCHEDULE_DELAY";
        if let Some(text) = self.get(name) {
            config.delay = self.millis(name, &text).unwrap_or(config.delay);
        }
        let name = "OTEL_BSP_MAX_QUEUE_SIZE";
        if let Some(text) = self.get(name) {
            config.max_queue = self.count(name, &text).unwrap_or(config.max_queue);
        }
        let name = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE";
        if let Some(text) = self.get(name) {
            config.max_batch = self.count(name, &text).unwrap_or(config.max_batch);
        }
    }

    fn millis(&mut self, name: &'static str, text: &str) -> Option<Duration> {
        let millis = text.parse().ok().filter(|millis| *millis > 0);
        let millis = millis.ok_or("write milliseconds as a whole number above 0");
        self.parse(name, millis).map(Duration::from_millis)
    }

    fn count(&mut self, name: &'static str, text: &str) -> Option<usize> {
        let count = text.parse().ok();
        let count = count.filter(|count| (1..=MOST_SPANS).contains(count));
        self.parse(name, count.ok_or("write a whole number from 1 to 65536"))
    }

    /// A list `key=value,key=value`, with percent signs where a character cannot stand for itself.
    fn pairs(&mut self, name: &'static str, text: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let pair = part.split_once('=').and_then(|(key, value)| {
                let key = key.trim();
                (!key.is_empty()).then_some((key.to_owned(), percent_decoded(value.trim())?))
            });
            pairs.extend(self.parse(name, pair.ok_or("write key=value,key=value")));
        }
        pairs
    }

    fn first_of(&self, names: [&'static str; 2]) -> Option<(&'static str, String)> {
        names
            .into_iter()
            .find_map(|name| Some((name, self.get(name)?)))
    }

    fn get(&self, name: &str) -> Option<String> {
        let value = (self.lookup)(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    fn parse<T, E: ToString>(&mut self, name: &'static str, parsed: Result<T, E>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(name, &error.to_string());
                None
            }
        }
    }

    fn fault(&mut self, name: &'static str, reason: &str) {
        let reason = reason.to_owned();
        self.faults.push(Fault { name, reason });
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            let digits = str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> TraceConfig {
        TraceConfig::new("http://collector:4318/v1/traces".parse().unwrap())
    }

    fn read(variables: &[(&str, &str)]) -> Result<TraceConfig, OtelError> {
        plain().with_otel(|name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_variables_nothing_changes() {
        assert_eq!(read(&[]), Ok(plain()));
        assert_eq!(read(&[("OTEL_SERVICE_NAME", " ")]), Ok(plain()));
    }

    #[test]
    fn everything_can_be_said() {
        let config = read(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=old,host.name=h1"),
            ("OTEL_SERVICE_NAME", "limits"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5"),
        ])
        .unwrap();
        let expected = TraceConfig {
            headers: vec![
                TraceHeader::new("api-key", "a b").unwrap(),
                TraceHeader::new("x", "1").unwrap(),
            ],
            sampling: Sampling::from_millionths(250_000),
            service_name: "limits".to_owned(),
            resource: vec![("host.name".to_owned(), "h1".to_owned())],
            max_queue: 10,
            max_batch: 5,
            delay: Duration::from_millis(100),
            timeout: Duration::from_millis(250),
            ..plain()
        };
        assert_eq!(config, expected);
        let shown = format!("{config:?}");
        assert!(!shown.contains("a b"), "{shown}");
    }

    #[test]
    fn what_is_said_of_traces_goes_first() {
        let config = read(&[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2"),
        ]);
        assert_eq!(config.unwrap().timeout, Duration::from_millis(2));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let faults = read(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "no pair,a b=1,x=%zz"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100000000"),
        ])
        .unwrap_err();
        let expected = "\
OTEL_EXPORTER_OTLP_HEADERS: write key=value,key=value
OTEL_EXPORTER_OTLP_HEADERS: write key=value,key=value
OTEL_EXPORTER_OTLP_HEADERS: this name or value cannot stand in a header
OTEL_TRACES_SAMPLER: write parentbased_always_on, parentbased_always_off or parentbased_traceidratio
OTEL_EXPORTER_OTLP_TIMEOUT: write milliseconds as a whole number above 0
OTEL_BSP_MAX_QUEUE_SIZE: write a whole number from 1 to 65536";
        assert_eq!(faults.to_string(), expected);
    }
}
