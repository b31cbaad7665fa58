//! A server that says what no Redis says, or stops in the middle.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::Breaker;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::PATIENCE;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::{ask, client, insist, until_open};

/// What a server does when it was asked something.
enum Deed {
    Say(String),
    /// Says this, and its own port.
    Own(&'static str),
    /// Nothing, for ever.
    Hang,
    /// It ends the connection.
    Close,
}

/// Listens on a free port and does to each question what it is told; ends with the process.
fn serve(deed: impl Fn(&str) -> Deed + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let deed = Arc::new(deed);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let deed = Arc::clone(&deed);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    match deed(&String::from_utf8_lossy(&bytes[..length])) {
                        Deed::Say(reply) => stream.write_all(reply.as_bytes()).unwrap(),
                        Deed::Own(reply) => {
                            write!(stream, "{reply}{}\r\n", address.port()).unwrap();
                        }
                        Deed::Hang => {}
                        Deed::Close => return,
                    }
                }
            });
        }
    });
    address
}

/// Whoever looks whether a server is back looks again when it hangs in the middle of that.
#[tokio::test]
async fn a_server_that_hangs_while_it_is_looked_at_is_looked_at_again() {
    let (n_pings, n_roles) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let address = serve(move |question| {
        let is_first = |count: &AtomicUsize, first| count.fetch_add(1, Ordering::Relaxed) < first;
        if question.contains("EVAL") {
            return Deed::Say(":1\r\n".to_owned());
        }
        if question.contains("ROLE") {
            if is_first(&n_roles, 1) {
                return Deed::Hang;
            }
            return Deed::Say("*1\r\n$6\r\nmaster\r\n".to_owned());
        }
        if is_first(&n_pings, 5) {
            return Deed::Close;
        }
        Deed::Say("+PONG\r\n".to_owned())
    });
    let client = client(&format!("redis://{address}"));
    until_open(&client, &["PING"]).await;
    insist(&client, &["PING"]).await;
}

/// A stand-in for Redis that does not know all of Redis 7 is back when it answers.
#[tokio::test]
async fn a_server_that_knows_no_such_script_is_back_all_the_same() {
    let n_pings = AtomicUsize::new(0);
    let address = serve(move |question| {
        if question.contains("EVAL") {
            return Deed::Say("-ERR Error compiling script\r\n".to_owned());
        }
        if question.contains("PING") && n_pings.fetch_add(1, Ordering::Relaxed) < 5 {
            return Deed::Close;
        }
        Deed::Say("+PONG\r\n".to_owned())
    });
    let client = client(&format!("redis://{address}"));
    until_open(&client, &["PING"]).await;
    insist(&client, &["PING"]).await;
}

/// All slots are at the port that is asked.
const OWN_SLOTS: &str = "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:";

/// Of a slot on its way, some keys of a call have not arrived: it is asked for again, and again as one that was
/// sent on. A server that knows no name of another means its own host.
#[tokio::test]
async fn a_call_that_is_to_come_later_comes_in_the_same_way() {
    let n_sent_on = AtomicUsize::new(0);
    let address = serve(move |question| {
        if question.contains("CLUSTER") {
            return Deed::Own(OWN_SLOTS);
        }
        if !question.contains("ASKING") {
            return match n_sent_on.load(Ordering::Relaxed) {
                0 => Deed::Own("-ASK 1 ?:"),
                _ => Deed::Say("-ERR it was not said that this was sent on\r\n".to_owned()),
            };
        }
        match n_sent_on.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Deed::Say("+OK\r\n-TRYAGAIN not all keys\r\n".to_owned()),
            _ => Deed::Say("+OK\r\n$1\r\n7\r\n".to_owned()),
        }
    });
    let client = client(&format!("redis+cluster://{address}"));
    assert_eq!(super::text(&client, &["GET", "a"]).await, "7");
}

/// What is sent on after its time is up would be charged to a caller who was told otherwise.
#[tokio::test]
async fn a_call_whose_time_is_up_is_not_sent_again() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_asked);
    let address = serve(move |question| {
        if question.contains("CLUSTER") {
            return Deed::Own(OWN_SLOTS);
        }
        let n_here = question.matches("GET").count();
        count.fetch_add(n_here, Ordering::Relaxed);
        Deed::Say("-TRYAGAIN not all keys\r\n".repeat(n_here))
    });
    let client = client(&format!("redis+cluster://{address}"));
    client.knock(PATIENCE).await.unwrap();
    // Less than it waits before it asks again.
    let hasty = client.with_timeout(Duration::from_millis(1));
    for n_calls in 1..=100 {
        assert!(ask(&hasty, &["GET", "a"]).await.is_err());
        assert!(n_asked.load(Ordering::Relaxed) <= n_calls);
    }
}

/// A Sentinel that is left behind, and whose master hangs, does not keep others from being asked.
#[tokio::test]
async fn a_sentinel_that_is_wrong_is_not_believed_for_ever() {
    let hanging = serve(|_| Deed::Hang);
    let good = serve(|question| {
        Deed::Say(if question.contains("ROLE") {
            "*1\r\n$6\r\nmaster\r\n".to_owned()
        } else {
            "+PONG\r\n".to_owned()
        })
    });
    let sentinel = |master: SocketAddr| {
        let port = master.port().to_string();
        let length = port.len();
        serve(move |_| Deed::Say(format!("*2\r\n$9\r\n127.0.0.1\r\n${length}\r\n{port}\r\n")))
    };
    let (stale, fresh) = (sentinel(hanging), sentinel(good));
    let url = format!("redis+sentinel://{stale},{fresh}/main");
    let mut config = ClientConfig::from_url(&url).unwrap();
    config.connect_timeout = Some(Duration::from_millis(200));
    let client = Client::new(&config).unwrap().with_timeout(PATIENCE);
    insist(&client, &["PING"]).await;
}

/// A server that sends calls to ever more others does not make us connect to all of them.
#[tokio::test]
async fn calls_are_sent_on_to_a_bounded_number_of_servers() {
    let (n_told, next_port) = (AtomicUsize::new(0), AtomicU16::new(1));
    let address = serve(move |question| {
        if !question.contains("CLUSTER") {
            let port = next_port.fetch_add(1, Ordering::Relaxed);
            return Deed::Say(format!("-ASK 1 127.0.0.2:{port}\r\n"));
        }
        // It tells so once: those who learn it again forget the servers that they were sent to.
        match n_told.fetch_add(1, Ordering::Relaxed) {
            0 => Deed::Own(OWN_SLOTS),
            _ => Deed::Close,
        }
    });
    let client = client(&format!("redis+cluster://{address}"));
    let mut n_sent_on = 0;
    loop {
        let error = ask(&client, &["GET", "a"]).await.unwrap_err().to_string();
        if error.contains("more servers than have slots") {
            break;
        }
        n_sent_on += 1;
        assert!(n_sent_on < 1000, "{error}");
    }
    assert_eq!(client.servers(), 1);
}

/// Counts the warnings of one thread.
#[derive(Clone, Default)]
struct WarningCount(Arc<AtomicUsize>);

impl Subscriber for WarningCount {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// A server that sends calls to ever other servers that are gone is not asked any more, and the log stays short.
#[tokio::test]
async fn a_server_that_sends_calls_nowhere_is_not_asked_and_logged_with_a_bound() {
    let lines = WarningCount::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let next_port = AtomicU16::new(1);
    let address = serve(move |question| {
        if question.contains("CLUSTER") {
            return Deed::Own(OWN_SLOTS);
        }
        if question.contains("GET") {
            let port = next_port.fetch_add(1, Ordering::Relaxed) % 5_000 + 1;
            return Deed::Say(format!("-MOVED 1 127.0.0.2:{port}\r\n"));
        }
        Deed::Say("+PONG\r\n".to_owned())
    });
    let client = client(&format!("redis+cluster://{address}"));
    until_open(&client, &["GET", "a"]).await;
    let began = tokio::time::Instant::now();
    for _ in 0..2_000 {
        assert!(ask(&client, &["GET", "a"]).await.is_err());
        tokio::task::yield_now().await;
    }
    // A burst of ten openings, each with a line that it is over, and then one every ten seconds.
    let most = 22 + began.elapsed().as_secs() / 5;
    let logged = lines.0.load(Ordering::Relaxed);
    assert!(logged > 0, "it is logged");
    assert!(u64::try_from(logged).unwrap() <= most, "{logged} lines");
}

/// That nobody answers for a Cluster is to be seen, though none of its servers is known.
#[tokio::test]
async fn a_cluster_that_nobody_answers_for_is_not_whole() {
    let client = client("redis+cluster://127.0.0.1:1,127.0.0.1:2");
    assert_eq!(client.report(), []);
    until_open(&client, &["PING"]).await;
    let report = client.report();
    let addresses: Vec<&str> = report.iter().map(|server| &*server.address).collect();
    assert_eq!(addresses, ["127.0.0.1:1", "127.0.0.1:2"]);
    for server in &report {
        assert_eq!(server.breaker, Breaker::Open);
        assert!(server.fault.is_some(), "{server:?}");
    }
    assert_eq!(ask(&client, &["PING"]).await, Err(StoreError::Open));
}
