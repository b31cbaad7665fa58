//! What every front door holds: the limiter, and what a core keeps for itself.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quanta::Instant;
use tidegate_answer::Answers;
use tidegate_limiter::{Limiter, LimiterError, Store, StoreError, Verdict};
use tidegate_observe::{Asked, LogSampler, Recorder};

use crate::AuthorizeConfig;
use crate::cores::Load;
use crate::within::within;

/// What the connections of one core share.
#[derive(Debug)]
pub(crate) struct Door<S> {
    /// Who decides.
    pub(crate) limiter: Arc<Limiter<S>>,
    /// What this core writes down.
    pub(crate) recorder: Rc<Recorder>,
    /// How answers look.
    pub(crate) answers: Answers,
    /// How `/v1/authorize` reads requests.
    pub(crate) authorize: AuthorizeConfig,
    /// Log lines about questions of proxies that made no sense, of all cores together.
    pub(crate) rejected_questions: Arc<LogSampler>,
    /// How much this core has to do.
    pub(crate) load: Arc<Load>,
}

/// A door, as a connection holds it.
pub(crate) type SharedDoor<S> = Rc<Door<S>>;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody at an address.
    Tcp(SocketAddr),
    /// Somebody on this machine.
    Unix,
}

// === impl Door ===

impl<S: Store> Door<S> {
    /// Judges one request, which may be part of a trace, and writes down what came of it.
    pub(crate) async fn check(&self, asked: &Asked<'_>) -> Result<Verdict, LimiterError> {
        self.load.count_call();
        // Twice 15 ns instead of twice 45 with the clock of the standard library.
        let started = Instant::now();
        let judged = self
            .limiter
            .check(asked.domain, asked.descriptors, asked.hits)
            .await;
        self.record(asked, started, &judged);
        judged
    }

    /// The same for a caller who waits no longer than `most`: if the store takes longer, each limit goes by its
    /// `on_failure`.
    pub(crate) async fn check_within(
        &self,
        asked: &Asked<'_>,
        most: Duration,
    ) -> Result<Verdict, LimiterError> {
        self.load.count_call();
        let started = Instant::now();
        let (domain, descriptors, hits) = (asked.domain, asked.descriptors, asked.hits);
        let check = within(most, pin!(self.limiter.check(domain, descriptors, hits))).await;
        let judged = check.unwrap_or_else(|| {
            let error = StoreError::Timeout { after: most };
            self.limiter
                .check_without_store(domain, descriptors, hits, error)
        });
        self.record(asked, started, &judged);
        judged
    }

    fn record(&self, asked: &Asked<'_>, started: Instant, judged: &Result<Verdict, LimiterError>) {
        match judged {
            Ok(verdict) => {
                self.recorder.judged(asked, verdict, started.elapsed());
            }
            Err(error) => self.recorder.rejected(error),
        }
    }
}
