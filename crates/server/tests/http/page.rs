//! docs/http.md: its samples are run, and answered as it says.

use serde_json::{Value, json};

use crate::client::{Server, post_to};

const PAGE: &str = include_str!("../../../../docs/http.md");
const RULES: &str = include_str!("../../../../deploy/rules/example.yaml");

/// A sample of the page: a call of `curl`, and what stands below it.
struct Sample {
    path: String,
    body: String,
    answer: Option<Value>,
}

/// The samples of the page with a body, in order.
fn samples() -> Vec<Sample> {
    // Text and blocks by turns.
    let parts: Vec<&str> = PAGE.split("```").collect();
    let blocks = (1..parts.len()).step_by(2);
    blocks.filter_map(|place| sample(&parts[place..])).collect()
}

/// The sample that `parts` begin with, if they do.
fn sample(parts: &[&str]) -> Option<Sample> {
    let (call, body) = parts[0].split_once(" -d '")?;
    let (_, path) = call.split_once("localhost:8080")?;
    let answer = match parts {
        [_, between, next, ..] if between.trim().is_empty() => next.strip_prefix("json\n"),
        _ => None,
    };
    Some(Sample {
        path: path.to_owned(),
        body: body.trim_end().strip_suffix('\'')?.to_owned(),
        answer: answer.map(|answer| serde_json::from_str(answer).unwrap()),
    })
}

#[tokio::test]
async fn the_samples_are_answered_as_shown() {
    let samples = samples();
    assert_eq!(samples.len(), 4, "the page has lost a sample");
    for Sample { path, body, answer } in samples {
        let server = Server::start(RULES).await;
        let reply = server.exchange(&post_to(&path, &body)).await;
        let told: Value = serde_json::from_str(&reply.body).unwrap();
        if let Some(answer) = answer {
            assert_eq!(told, answer, "{body}");
            continue;
        }
        // Every sample is of somebody whom the rules limit.
        let first = told.get("checks").map_or(&told, |checks| &checks[0]);
        assert_ne!(first["limits"], json!([]), "{body}");
        assert_eq!(first["allowed"], json!(true), "{body}");
    }
}
