//! A caller who waits no longer than its `grpc-timeout`, and a store that never answers.

use std::future::pending;
use std::time::Duration;

use prost::Message;
use tidegate_limiter::{Decision, LimiterConfig, Quota, RefundTo, Time};
use tidegate_server::GrpcConfig;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, Page, Receipt, Store, StoreError,
};
use tokio::time::{Instant, timeout};

use crate::client::{Reply, SHOULD_RATE_LIMIT, Server, framed, head, run};
use crate::wire::{RateLimitResponse, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: allow
    rate_limit: { unit: minute, requests_per_unit: 100, on_failure: allow }
  - key: deny
    rate_limit: { unit: minute, requests_per_unit: 100, on_failure: deny }
";

/// The codes of Envoy.
const OK: i32 = 1;
const OVER_LIMIT: i32 = 2;

/// A store that never answers.
struct StuckStore;

/// Asks such a server, with the message a while after the headers; returns the answer and the time that it took from
/// the headers on.
fn answer(key: &str, deadline: Option<&str>, message_after: Duration) -> (i32, Duration) {
    let mut outcome = None;
    run(async {
        let config = GrpcConfig {
            call_timeout: Duration::from_secs(7),
            ..GrpcConfig::default()
        };
        let server = Server::with_store(StuckStore, RULES, config, LimiterConfig::default());
        let mut client = server.connect().await;
        let mut request = head(SHOULD_RATE_LIMIT);
        if let Some(deadline) = deadline {
            request = request.header("grpc-timeout", deadline);
        }
        let started = Instant::now();
        let (response, mut stream) = client.open(request.body(()).unwrap()).await;
        // The server has the headers when nothing is left to do but to wait.
        let _ = timeout(message_after, pending::<()>()).await;
        let question = framed(&ask("api", &[(key, "7")]));
        stream.send_data(question, true).unwrap();
        let reply = Reply::read(response).await;
        let took = started.elapsed();
        assert_eq!(reply.status().0, "0", "{reply:?}");
        let response = RateLimitResponse::decode(&reply.body[5..]).unwrap();
        outcome = Some((response.overall_code, took));
    });
    outcome.unwrap()
}

#[test]
fn on_failure_answers_before_the_callers_deadline() {
    for (key, code) in [("allow", OK), ("deny", OVER_LIMIT)] {
        for (timeout, most) in [("20m", 20), ("100m", 100), ("2m", 4)] {
            let (answered, took) = answer(key, Some(timeout), Duration::ZERO);
            assert_eq!(answered, code, "{key} {timeout}");
            assert!(took < Duration::from_millis(most), "{timeout}: {took:?}");
        }
    }
}

#[test]
fn a_caller_without_a_deadline_is_answered_as_well() {
    let (answered, took) = answer("deny", None, Duration::ZERO);
    assert_eq!((answered, took.as_secs()), (OVER_LIMIT, 6));
}

/// The caller waits from its headers on. Counted from the message, the answer came after the deadline.
#[test]
fn a_message_that_comes_late_leaves_less_time_for_the_decision() {
    for message_after in [10, 14, 18] {
        let (answered, took) = answer("deny", Some("20m"), Duration::from_millis(message_after));
        assert_eq!(answered, OVER_LIMIT, "{message_after} ms");
        assert!(
            took < Duration::from_millis(20),
            "{message_after} ms: {took:?}"
        );
    }
}

// === impl StuckStore ===

impl Store for StuckStore {
    async fn charge(
        &self,
        _: &[Charge<'_>],
        _: Charging,
        _: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        pending().await
    }

    async fn peek(&self, _: &Charge<'_>) -> Result<Decision, StoreError> {
        pending().await
    }

    async fn refund(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: u64,
        _: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        pending().await
    }

    async fn reset(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        pending().await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        pending().await
    }

    async fn list(&self, _: Cursor, _: usize) -> Result<Page, StoreError> {
        pending().await
    }
}
