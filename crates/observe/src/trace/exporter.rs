//! Sends spans away, in batches.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::TraceConfig;
use super::otlp;
use super::post::{Sent, post};
use super::span::Span;

/// Sends the spans of all cores away. Decisions never wait for it: a span that finds the queue full is
/// dropped and counted.
#[derive(Debug)]
pub struct Exporter {
    config: TraceConfig,
    spans: mpsc::Receiver<Span>,
    lost: Arc<AtomicU64>,
}

/// Where spans wait to be sent.
#[derive(Clone, Debug)]
pub(crate) struct SpanQueue {
    spans: mpsc::Sender<Span>,
    lost: Arc<AtomicU64>,
}

/// Whether there is more to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Ending,
}

/// A queue, and what empties it.
pub(crate) fn exporter(config: TraceConfig) -> (SpanQueue, Exporter) {
    let (sender, receiver) = mpsc::channel(config.max_queue.max(1));
    let lost = Arc::new(AtomicU64::new(0));
    let queue = SpanQueue {
        spans: sender,
        lost: Arc::clone(&lost),
    };
    let exporter = Exporter {
        config,
        spans: receiver,
        lost,
    };
    (queue, exporter)
}

// === impl Exporter ===

impl Exporter {
    /// How often a batch is tried in all.
    const N_TRIES: u32 = 4;

    /// The longest pause before another try, whatever the receiver asks for.
    const LONGEST_PAUSE: Duration = Duration::from_secs(30);

    /// Sends spans until `end` is ready, and then those that wait, for no longer than one attempt may
    /// take.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut phase = Phase::Running;
        let mut batch = Vec::new();
        while phase == Phase::Running {
            phase = self.gather(&mut batch, end.as_mut()).await;
            if phase == Phase::Running {
                phase = self.send(&mut batch, end.as_mut()).await;
            }
        }
        self.spans.close();
        let patience = self.config.timeout;
        if timeout(patience, self.flush(&mut batch)).await.is_err() {
            // Those that are still there will never be sent.
            while let Ok(span) = self.spans.try_recv() {
                batch.push(span);
            }
            self.settle(&batch, Sent::Refused);
        }
    }

    /// Fills a batch until it is full, or its first span has waited long enough.
    async fn gather(
        &mut self,
        batch: &mut Vec<Span>,
        end: Pin<&mut impl Future<Output = ()>>,
    ) -> Phase {
        let most = self.config.max_batch.max(1);
        let spans = &mut self.spans;
        let delay = self.config.delay;
        let fill = async {
            if spans.recv_many(batch, most).await == 0 {
                return Phase::Ending;
            }
            let rest = async {
                while batch.len() < most {
                    if spans.recv_many(batch, most - batch.len()).await == 0 {
                        break;
                    }
                }
            };
            // Late or full, it goes out now.
            let _ = timeout(delay, rest).await;
            Phase::Running
        };
        tokio::select! {
            () = end => Phase::Ending,
            phase = fill => phase,
        }
    }

    /// Sends a batch, several times if need be. It is empty then, unless the end came before.
    async fn send(
        &self,
        batch: &mut Vec<Span>,
        mut end: Pin<&mut impl Future<Output = ()>>,
    ) -> Phase {
        let mut pause = self.config.first_pause;
        for n_tries in 1..=Self::N_TRIES {
            let after = match self.try_once(batch).await {
                Sent::TryAgain { after } if n_tries < Self::N_TRIES => after,
                sent => {
                    self.settle(batch, sent);
                    break;
                }
            };
            let wait = after.unwrap_or(pause).min(Self::LONGEST_PAUSE);
            pause = pause.saturating_mul(2);
            if timeout(wait, end.as_mut()).await.is_ok() {
                return Phase::Ending;
            }
        }
        batch.clear();
        Phase::Running
    }

    /// Sends what is left, once.
    async fn flush(&mut self, batch: &mut Vec<Span>) {
        loop {
            while batch.len() < self.config.max_batch.max(1) {
                let Ok(span) = self.spans.try_recv() else {
                    break;
                };
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            let sent = self.try_once(batch).await;
            self.settle(batch, sent);
            batch.clear();
        }
    }

    async fn try_once(&self, batch: &[Span]) -> Sent {
        let request = otlp::Request::new(&self.config, batch);
        let Ok(body) = serde_json::to_vec(&request) else {
            return Sent::Refused;
        };
        match timeout(self.config.timeout, post(&self.config, body.into())).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "spans were not sent"
                );
                Sent::TryAgain { after: None }
            }
            Err(_) => Sent::TryAgain { after: None },
        }
    }

    /// Counts what was lost of a batch.
    fn settle(&self, batch: &[Span], sent: Sent) {
        let n_lost = match sent {
            Sent::Taken { n_rejected } => n_rejected,
            Sent::TryAgain { .. } | Sent::Refused => u64::try_from(batch.len()).unwrap_or(u64::MAX),
        };
        if n_lost > 0 {
            self.lose(n_lost);
            let endpoint = tracing::field::display(&self.config.endpoint);
            tracing::warn!(endpoint, spans = n_lost, "spans were lost");
        }
    }

    fn lose(&self, n_spans: u64) {
        self.lost.fetch_add(n_spans, Ordering::Relaxed);
    }
}

// === impl SpanQueue ===

impl SpanQueue {
    /// Adds a span, or drops it if too many wait.
    pub(crate) fn add(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many spans were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
