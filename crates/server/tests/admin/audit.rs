//! Every change leaves a line in the log.

use std::fmt::{self, Write};
use std::sync::{LazyLock, Mutex};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::desk::{Ask, Desk, guarded, user};

/// All lines of the log for operators, of every test of this program.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sends the log to `LINES`, once.
static LOG: LazyLock<()> = LazyLock::new(|| {
    tracing::subscriber::set_global_default(Log).unwrap();
});

struct Log;

struct Line(String);

// === impl Log ===

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "audit"
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(level(event.metadata()).to_owned());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

fn level(metadata: &Metadata<'_>) -> &'static str {
    if *metadata.level() == Level::INFO {
        "info"
    } else {
        "warn"
    }
}

// === impl Line ===

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Every test has a port of its own.
        if field.name() != "peer" {
            let _ = write!(self.0, " {field}={value:?}");
        }
    }
}

/// The lines that name `user`.
fn lines_of(user: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    lines
        .iter()
        .filter(|line| line.contains(user))
        .cloned()
        .collect()
}

#[tokio::test]
async fn a_change_says_who_did_what_to_whom() {
    LazyLock::force(&LOG);
    let desk = Desk::start();
    let mut ban = user("audited\n");
    ban["for_seconds"] = json!(60);
    ban["reason"] = json!("scraping");
    desk.post("/api/v1/keys/ban", &ban).await.ok();
    desk.post("/api/v1/keys/lookup", &user("audited\n"))
        .await
        .ok();
    desk.post("/api/v1/keys/unban", &user("audited\n"))
        .await
        .ok();
    desk.post("/api/v1/keys/reset", &user("audited\n"))
        .await
        .ok();
    let mut grant = user("audited\n");
    grant["hits"] = json!(7);
    desk.post("/api/v1/keys/grant", &grant).await.ok();
    let line = |action: &str, outcome: &str| {
        format!(
            "info message=changed over the admin API action=\"{action}\" domain=\"api\" \
             rule=\"user_id\" entries=\"user_id=audited\\n\" outcome=\"{outcome}\""
        )
    };
    let expected = [
        line("ban", "banned for 60 s: scraping"),
        line("unban", "lifted"),
        line("reset", "0 counters forgotten"),
        line("grant", "7 hits given back"),
    ];
    assert_eq!(lines_of("audited"), expected, "a look is no change");
}

#[tokio::test]
async fn who_is_turned_away_is_noted() {
    LazyLock::force(&LOG);
    let desk = Desk::start_with(guarded());
    let ask = Ask::new("POST", "/api/v1/keys/grant").token("wrong");
    // The first at once; further ones wait for a line with their number.
    for _ in 0..4 {
        assert_eq!(desk.send(&ask).await.status, 401);
    }
    let expected = "warn message=turned away from the admin API n_requests=1 path=\"/api/v1/keys/grant\" \
                    reason=\"the token is not the admin token\"";
    assert_eq!(lines_of("keys/grant"), [expected]);
}

#[tokio::test]
async fn what_is_done_to_the_server_is_noted_too() {
    LazyLock::force(&LOG);
    let desk = Desk::start();
    desk.post("/api/v1/reload", &json!(null)).await.ok();
    let level = Ask::new("PUT", "/api/v1/log-level").body(r#"{"level": "debug"}"#);
    desk.send(&level).await.ok();
    let reload = "info message=changed over the admin API action=\"reload\" \
                  outcome=\"the new rules are in force\"";
    let level = "info message=changed over the admin API action=\"log-level\" \
                 outcome=\"from info to debug\"";
    // Other tests do the same, so there may be more of them.
    for line in [reload, level] {
        assert!(lines_of(line).contains(&line.to_owned()), "{line}");
    }
}
