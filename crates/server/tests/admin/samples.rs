//! The samples of docs/admin.md, against a server that runs.

use serde_json::Value;

use crate::desk::{Ask, Desk};

const PAGE: &str = include_str!("../../../../docs/admin.md");

/// A request of the page, and what it shows as the answer.
struct Sample {
    ask: Ask,
    expected: Option<Value>,
    line: String,
}

/// Each `curl` of a `sh` block, with the `json` block that follows it at once.
fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut blocks = PAGE.split("```").skip(1).step_by(2).peekable();
    while let Some(block) = blocks.next() {
        let Some(commands) = block.strip_prefix("sh\n") else {
            continue;
        };
        let shown = blocks.peek().and_then(|next| next.strip_prefix("json\n"));
        let commands = commands.replace("\\\n", " ");
        for line in commands.lines().filter(|line| line.starts_with("curl ")) {
            samples.push(Sample {
                ask: ask(line),
                expected: None,
                line: line.to_owned(),
            });
        }
        if let (Some(last), Some(shown)) = (samples.last_mut(), shown) {
            last.expected = Some(serde_json::from_str(shown).unwrap());
        }
    }
    samples
}

/// What `curl` sends: `-X METHOD`, `-d 'BODY'`, and a path below the admin listener.
fn ask(line: &str) -> Ask {
    let (_, rest) = line.split_once("localhost:6070").expect(line);
    let path = rest.split(' ').next().unwrap();
    let body = line
        .split_once("-d '")
        .map(|(_, rest)| rest.split('\'').next().unwrap());
    let method = line
        .split_once("-X ")
        .map(|(_, rest)| rest.split(' ').next().unwrap());
    let usual = if body.is_some() { "POST" } else { "GET" };
    let path = path.trim_matches('\'');
    Ask::new(method.unwrap_or(usual), path).body(body.unwrap_or_default())
}

#[tokio::test]
async fn the_samples_of_the_page_work() {
    let desk = Desk::start();
    for _ in 0..2 {
        desk.passes("42").await;
    }
    let samples = samples();
    assert!(samples.len() > 10, "they are found");
    for Sample {
        ask,
        expected,
        line,
    } in samples
    {
        let reply = desk.send(&ask).await;
        assert_eq!(reply.status, 200, "{line}: {reply:?}");
        if let Some(expected) = expected {
            assert_eq!(reply.json(), expected, "{line}");
        }
    }
}
