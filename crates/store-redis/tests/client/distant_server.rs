//! A server whose replies take time, and time that moves only when nothing else is left to do.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::pin;
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, advance, timeout_at};

/// A server that answers every command with `OK`, a round trip later.
pub(crate) struct DistantServer {
    pub(crate) url: String,
    latency: watch::Sender<Latency>,
}

/// The time that a reply takes.
#[derive(Clone, Copy)]
pub(crate) enum Latency {
    Of(Duration),
    /// No reply is sent until there is another latency.
    Stalled,
}

/// Time moves in such steps.
const STEP: Duration = Duration::from_millis(1);

/// The turns of the runtime, each of which looks at all sockets, in which all that has been sent is received and
/// answered.
const TURNS: usize = 20;

// === impl DistantServer ===

impl DistantServer {
    /// Starts one in this runtime. It wants a password, so that connecting takes a round trip.
    pub(crate) async fn start(latency: Latency) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://:secret@{}", listener.local_addr().unwrap());
        let (latency, watched) = watch::channel(latency);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(answer(stream, watched.clone()));
            }
        });
        Self { url, latency }
    }

    pub(crate) fn set(&self, latency: Latency) {
        self.latency.send(latency).unwrap();
    }
}

/// Answers the commands of one connection until it ends.
async fn answer(mut stream: TcpStream, mut latency: watch::Receiver<Latency>) {
    let (mut reader, mut writer) = stream.split();
    let mut received = VecDeque::new();
    let mut bytes = [0; 4096];
    loop {
        let now = *latency.borrow_and_update();
        let due = match (received.front(), now) {
            (Some(&first), Latency::Of(latency)) => Some(first + latency),
            _ => None,
        };
        let answering = async {
            match due {
                Some(due) => timeout_at(due, pending::<()>()).await.unwrap_or_default(),
                None => pending().await,
            }
        };
        tokio::select! {
            () = answering => {
                received.pop_front();
                let _ = writer.write_all(b"+OK\r\n").await;
            }
            read = reader.read(&mut bytes) => match read {
                // Each command is an array, and nothing else in it has this character.
                Ok(length @ 1..) => {
                    let commands = bytes[..length].iter().filter(|&&byte| byte == b'*');
                    received.extend(commands.map(|_| Instant::now()));
                }
                _ => return,
            },
            changed = latency.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Runs a test in a paused runtime whose time moves when all sockets have been looked at and the test still waits.
pub(crate) async fn in_moved_time<T>(test: impl Future<Output = T>) -> T {
    // By itself a paused runtime moves time though bytes are on their way, but not while something blocks.
    let (_end, ended) = mpsc::channel::<()>();
    spawn_blocking(move || ended.recv());
    let (mut sender, mut receiver) = connected().await;
    let mut test = pin!(test);
    loop {
        let all_is_done = async {
            for _ in 0..TURNS {
                yield_now().await;
                // On a busy machine bytes arrive late; these do not overtake them.
                sender.write_all(b"?").await.unwrap();
                receiver.read_exact(&mut [0]).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            output = &mut test => return output,
            () = all_is_done => advance(STEP).await,
        }
    }
}

/// The two ends of a connection of its own.
async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).await;
    let sender = sender.unwrap();
    sender.set_nodelay(true).unwrap();
    (sender, listener.accept().await.unwrap().0)
}
