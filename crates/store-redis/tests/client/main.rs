//! The client against real servers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod asking;
mod cluster;
mod distant_server;
mod encrypted;
mod failing;
mod greeting;
mod knock;
mod late;
mod lying;
mod pipelining;
mod reports;
mod sentinel;

use tidegate_store::StoreError;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Reply, Route};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};

/// A client whose calls take their time, for what becomes of them is looked at, and not the time of a
/// busy machine.
fn client(url: &str) -> Client {
    let mut config = ClientConfig::from_url(url).expect("the URL is good");
    config.connect_timeout = Some(PATIENCE);
    let client = Client::new(&config).expect("the certificates are good");
    client.with_timeout(PATIENCE)
}

fn words(words: &[&str]) -> impl Fn(&mut Command<'_>) + Send {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    move |command| {
        for word in &words {
            command.arg(word);
        }
    }
}

async fn ask(client: &Client, question: &[&str]) -> Result<Reply, StoreError> {
    // The key of most commands.
    let key = question.get(1).unwrap_or(&"").as_bytes();
    client.call(Route::Key(key), words(question)).await
}

async fn text(client: &Client, question: &[&str]) -> String {
    let reply = ask(client, question).await.expect("it is answered");
    let text = reply.text().expect("it is a text").unwrap_or(b"(nil)");
    String::from_utf8_lossy(text).into_owned()
}

/// Asks until it is answered.
async fn insist(client: &Client, question: &[&str]) -> Reply {
    let insisting = async {
        loop {
            match ask(client, question).await {
                Ok(reply) => return reply,
                // While the breaker is open, nothing else would ever get to run.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let insisting = tokio::time::timeout(PATIENCE, insisting);
    insisting.await.expect("it comes back by itself")
}

/// Asks until the breaker is open.
async fn until_open(client: &Client, question: &[&str]) {
    let failing = async { while ask(client, question).await != Err(StoreError::Open) {} };
    let failing = tokio::time::timeout(PATIENCE, failing);
    failing.await.expect("the breaker opens");
}

/// How often a server was asked a command.
fn n_calls(server: &RedisServer, command: &str) -> u64 {
    let stats = server.must(&["INFO", "commandstats"]);
    let stats = String::from_utf8_lossy(stats.text().unwrap().unwrap_or_default()).into_owned();
    let name = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|line| line.strip_prefix(&*name));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

/// Waits until something is so, and asks nothing.
async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.expect("it comes about by itself");
}
