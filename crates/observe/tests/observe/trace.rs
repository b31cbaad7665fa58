//! Spans, as a receiver sees them.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;
use tidegate_observe::{ObserveConfig, Sampling, TraceConfig, TraceHeader, TraceHeaders};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::collector::{Answer, Batch, Collector, attributes};
use crate::fixture::{Watched, watched};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
";

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

const TRACED: TraceHeaders<'static> = TraceHeaders {
    traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    tracestate: Some("vendor=1"),
};

const UNTRACED: TraceHeaders<'static> = TraceHeaders {
    traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
    tracestate: None,
};

const NONE: TraceHeaders<'static> = TraceHeaders {
    traceparent: None,
    tracestate: None,
};

/// An exporter that runs, and what ends it.
struct Running {
    end: oneshot::Sender<()>,
    exporter: JoinHandle<()>,
}

fn config(url: &str) -> TraceConfig {
    TraceConfig {
        delay: Duration::from_millis(1),
        first_pause: Duration::from_millis(1),
        ..TraceConfig::new(url.parse().unwrap())
    }
}

fn traced(config: TraceConfig) -> Watched {
    let traces = Some(config);
    let config = ObserveConfig {
        traces,
        ..ObserveConfig::default()
    };
    watched(YAML, config)
}

fn run(watched: &mut Watched) -> Running {
    let exporter = watched.exporter.take().unwrap();
    let (end, ended) = oneshot::channel();
    let exporter = tokio::spawn(exporter.run(async {
        let _ = ended.await;
    }));
    Running { end, exporter }
}

// === impl Running ===

impl Running {
    async fn end(self) {
        self.end.send(()).unwrap();
        self.exporter.await.unwrap();
    }
}

/// Sends one span to a collector that answers so, and gives what arrived and how much was lost.
async fn send_one(answers: &[Answer]) -> (Vec<Batch>, u64) {
    let mut collector = Collector::answering(answers).await;
    let mut watched = traced(config(&collector.url));
    let running = run(&mut watched);
    watched.ask_traced(&[("user", "a")], TRACED);
    let mut batches = vec![collector.next().await];
    for _ in 1..answers.len() {
        batches.push(collector.next().await);
    }
    running.end().await;
    (batches, watched.observatory.totals().lost_spans)
}

#[tokio::test]
async fn a_span_tells_what_was_decided_and_nothing_of_the_client() {
    let mut collector = Collector::answering(&[]).await;
    let config = TraceConfig {
        headers: vec![TraceHeader::new("api-key", "secret").unwrap()],
        service_name: "limits".to_owned(),
        resource: vec![("host.name".to_owned(), "h1".to_owned())],
        ..config(&collector.url)
    };
    let mut watched = traced(config);
    assert!(watched.recorder.traces());
    watched.ask_traced(&[("user", "client's own")], TRACED);
    let running = run(&mut watched);
    let batch = collector.next().await;
    running.end().await;
    assert_eq!(batch.path, "/v1/traces");
    for header in [("content-type", "application/json"), ("api-key", "secret")] {
        let header = (header.0.to_owned(), header.1.to_owned());
        assert!(batch.headers.contains(&header), "{batch:?}");
    }
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        pairs.iter().map(owned).collect()
    };
    let resource = [("service.name", "limits"), ("host.name", "h1")];
    assert_eq!(batch.resource(), pairs(&resource));
    let spans = batch.spans();
    let [span] = spans.as_slice() else {
        panic!("{batch:?}");
    };
    assert_eq!(span["traceId"], TRACE);
    assert_eq!(span["parentSpanId"], PARENT);
    assert_eq!(span["traceState"], "vendor=1");
    assert_eq!(span["name"], "tidegate.check");
    assert_eq!(span["kind"], 2);
    assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
    assert_ne!(span["spanId"], PARENT);
    let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(time("endTimeUnixNano") - time("startTimeUnixNano"), 700);
    let expected = [
        ("tidegate.domain", "test"),
        ("tidegate.rule", "user"),
        ("tidegate.outcome", "allowed"),
    ];
    assert_eq!(attributes(span), pairs(&expected));
    assert!(!batch.body.to_string().contains("client"));
}

#[tokio::test]
async fn who_comes_with_a_trace_decides_whether_to_trace() {
    let mut collector = Collector::answering(&[]).await;
    let config = TraceConfig {
        sampling: Sampling::NONE,
        ..config(&collector.url)
    };
    let mut watched = traced(config);
    watched.ask_traced(&[("user", "a")], NONE);
    watched.ask_traced(&[("user", "b")], UNTRACED);
    watched.ask_traced(&[("nothing", "c")], TRACED);
    let running = run(&mut watched);
    let spans = collector.next().await.spans();
    running.end().await;
    assert_eq!(spans.len(), 1);
    let expected = json!([
        { "key": "tidegate.domain", "value": { "stringValue": "test" } },
        { "key": "tidegate.outcome", "value": { "stringValue": "unmatched" } },
    ]);
    assert_eq!(spans[0]["attributes"], expected);
}

#[tokio::test]
async fn who_comes_without_a_trace_begins_one() {
    let mut collector = Collector::answering(&[]).await;
    let mut watched = traced(config(&collector.url));
    let broken = TraceHeaders {
        traceparent: Some("00-nonsense"),
        tracestate: Some("vendor=1"),
    };
    watched.ask_traced(&[("user", "a")], NONE);
    watched.ask_traced(&[("user", "a")], broken);
    watched.ask_traced(&[("user", "a")], UNTRACED);
    let running = run(&mut watched);
    let spans = collector.next().await.spans();
    running.end().await;
    assert_eq!(spans.len(), 2);
    assert_ne!(spans[0]["traceId"], spans[1]["traceId"]);
    for span in &spans {
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert!(span.get("parentSpanId").is_none());
        assert!(span.get("traceState").is_none());
    }
}

#[tokio::test]
async fn a_batch_is_tried_again_when_that_may_help() {
    let (batches, n_lost) = send_one(&[(503, ""), (429, ""), (200, "")]).await;
    assert_eq!(batches.len(), 3);
    assert_eq!(batches[0].body, batches[2].body);
    assert_eq!(n_lost, 0);
}

#[tokio::test]
async fn a_batch_is_given_up_at_last() {
    let (_, n_lost) = send_one(&[(503, ""); 4]).await;
    assert_eq!(n_lost, 1);
}

#[tokio::test]
async fn a_batch_that_is_refused_is_lost() {
    let (_, n_lost) = send_one(&[(400, "no")]).await;
    assert_eq!(n_lost, 1);
}

#[tokio::test]
async fn spans_that_the_receiver_rejects_are_lost() {
    let answer = r#"{"partialSuccess":{"rejectedSpans":"1"}}"#;
    let (_, n_lost) = send_one(&[(200, answer)]).await;
    assert_eq!(n_lost, 1);
}

#[tokio::test]
async fn nobody_waits_when_the_queue_is_full() {
    let config = TraceConfig {
        max_queue: 2,
        ..config("http://127.0.0.1:1")
    };
    let watched = traced(config);
    for _ in 0..5 {
        watched.ask_traced(&[("user", "a")], TRACED);
    }
    assert_eq!(watched.observatory.totals().lost_spans, 3);
}

#[tokio::test]
async fn spans_are_lost_when_nobody_receives_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut watched = traced(config(&url));
    watched.ask_traced(&[("user", "a")], TRACED);
    run(&mut watched).end().await;
    assert_eq!(watched.observatory.totals().lost_spans, 1);
}

#[tokio::test]
async fn what_waits_at_the_end_is_sent() {
    let mut collector = Collector::answering(&[]).await;
    let config = TraceConfig {
        delay: Duration::from_hours(1),
        max_batch: 2,
        ..config(&collector.url)
    };
    let mut watched = traced(config);
    for _ in 0..3 {
        watched.ask_traced(&[("user", "a")], TRACED);
    }
    let running = run(&mut watched);
    assert_eq!(
        collector.next().await.spans().len(),
        2,
        "a full batch goes at once"
    );
    running.end().await;
    assert_eq!(collector.next().await.spans().len(), 1);
    assert_eq!(watched.observatory.totals().lost_spans, 0);
}

#[test]
fn nothing_is_traced_unless_asked_for() {
    let watched = watched(YAML, ObserveConfig::default());
    assert!(watched.exporter.is_none() && !watched.recorder.traces());
}
