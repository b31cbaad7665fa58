//! The environment variables of OpenTelemetry.

use std::time::Duration;

use super::{Endpoint, Sampling, TraceConfig, TraceHeader};

/// The variables that [`TraceConfig::from_otel`] reads.
pub const OTEL_VARIABLES: &[&str] = &[
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
];

/// The most spans that may wait, whatever a variable says: some tens of megabytes.
const MOST_SPANS: usize = 65_536;

/// A variable whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct OtelError {
    /// The name of the variable.
    pub name: String,
    /// What is wrong with its value, and what to write instead.
    pub reason: String,
}

/// Reads variables, and notes what is wrong with them.
struct Reader<L> {
    lookup: L,
    errors: Vec<OtelError>,
}

// === impl TraceConfig ===

impl TraceConfig {
    /// Reads how to trace from the variables of OpenTelemetry, which `lookup` finds. `None` if they
    /// name no endpoint, or turn tracing off. A variable that is empty counts as not there.
    ///
    /// # Errors
    ///
    /// Every variable that is there and cannot be used.
    pub fn from_otel(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Vec<OtelError>> {
        let mut reader = Reader {
            lookup,
            errors: Vec::new(),
        };
        let config = reader.config();
        if reader.errors.is_empty() {
            Ok(config)
        } else {
            Err(reader.errors)
        }
    }
}

// === impl Reader ===

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    fn config(&mut self) -> Option<TraceConfig> {
        let disabled = self.get("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return None;
        }
        let exporter = self.get("OTEL_TRACES_EXPORTER");
        match exporter.as_deref() {
            None | Some("otlp") => {}
            Some("none") => return None,
            Some(_) => self.fault("OTEL_TRACES_EXPORTER", "write otlp or none"),
        }
        let mut config = TraceConfig::new(self.endpoint()?);
        self.check_protocol();
        self.read_identity(&mut config);
        self.read_sampling(&mut config);
        self.read_numbers(&mut config);
        Some(config)
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        if let Some(text) = self.get(own) {
            return self.parse(own, text.parse());
        }
        let shared = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let text = self.get(shared)?;
        let endpoint: Endpoint = self.parse(shared, text.parse())?;
        Some(endpoint.for_traces())
    }

    fn check_protocol(&mut self) {
        let names = [
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ];
        if let Some((name, protocol)) = self.first_of(names)
            && protocol != "http/json"
        {
            self.fault(
                name,
                "only http/json is spoken; collectors take it on port 4318",
            );
        }
    }

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
            None | Some("parentbased_always_on") => {}
            Some("parentbased_always_off") => config.sampling = Sampling::NONE,
            Some("parentbased_traceidratio") => {
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

    fn millis(&mut self, name: &str, text: &str) -> Option<Duration> {
        let millis = text.parse().ok().filter(|millis| *millis > 0);
        let millis = millis.ok_or("write milliseconds as a whole number above 0");
        self.parse(name, millis).map(Duration::from_millis)
    }

    fn count(&mut self, name: &str, text: &str) -> Option<usize> {
        let count = text.parse().ok();
        let count = count.filter(|count| (1..=MOST_SPANS).contains(count));
        self.parse(name, count.ok_or("write a whole number from 1 to 65536"))
    }

    /// A list `key=value,key=value`, with percent signs where a character cannot stand for itself.
    fn pairs(&mut self, name: &str, text: &str) -> Vec<(String, String)> {
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

    fn parse<T, E: ToString>(&mut self, name: &str, parsed: Result<T, E>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(name, &error.to_string());
                None
            }
        }
    }

    fn fault(&mut self, name: &str, reason: &str) {
        self.errors.push(OtelError {
            name: name.to_owned(),
            reason: reason.to_owned(),
        });
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

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceConfig>, Vec<OtelError>> {
        for (name, _) in variables {
            assert!(OTEL_VARIABLES.contains(name), "{name}");
        }
        TraceConfig::from_otel(|name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    #[test]
    fn without_an_endpoint_nothing_is_traced() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_SERVICE_NAME", "limits")]), Ok(None));
        assert_eq!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        assert_eq!(
            read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]),
            Ok(None)
        );
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(None));
    }

    #[test]
    fn everything_can_be_said() {
        let config = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=old,host.name=h1"),
            ("OTEL_SERVICE_NAME", "limits"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5"),
        ]);
        let config = config.unwrap().unwrap();
        let endpoint = "http://collector:4318/v1/traces".parse().unwrap();
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
            ..TraceConfig::new(endpoint)
        };
        assert_eq!(config, expected);
        let shown = format!("{config:?}");
        assert!(!shown.contains("a b"), "{shown}");
    }

    #[test]
    fn the_variable_for_traces_is_taken_as_it_is() {
        let config = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1]:9/x"),
        ]);
        assert_eq!(
            config.unwrap().unwrap().endpoint.to_string(),
            "http://[::1]:9/x"
        );
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let faults = read(&[
            ENDPOINT,
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "no pair,a b=1,x=%zz"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_TRACES_SAMPLER", "always_on"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100000000"),
        ])
        .unwrap_err();
        let names: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
        let expected = [
            "OTEL_TRACES_EXPORTER",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_TRACES_SAMPLER",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "OTEL_BSP_MAX_QUEUE_SIZE",
        ];
        assert_eq!(names, expected);
        let tls = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector")];
        assert!(read(&tls).unwrap_err()[0].reason.contains("http://"));
    }
}
