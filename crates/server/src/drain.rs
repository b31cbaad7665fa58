//! The end of a server, as connections and health checks see it.

use hyper::Response;
use hyper::header::{CONNECTION, HeaderValue};
use tokio::sync::watch;
use tokio::task::yield_now;

/// Leads a server through the phases of its end. Dropping it ends the server at once.
#[derive(Debug)]
pub(crate) struct DrainSwitch(watch::Sender<Phase>);

/// Says when to finish; each connection holds one.
#[derive(Clone, Debug)]
pub(crate) struct Drain(watch::Receiver<Phase>);

/// Where a server is in its life, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes requests.
    Serving,
    /// It still does, but health checks are told to send no more, and each answer over HTTP/1 closes its connection.
    Leaving,
    /// It takes no connection. Idle HTTP/1 connections have time for one more request.
    Draining,
    /// Idle connections close.
    Closing,
    /// What is not answered by now never will be.
    Over,
}

/// What a health check is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Send requests here.
    Serving,
    /// Send them elsewhere.
    Draining,
}

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// A switch and what listens to it.
pub(crate) fn drain() -> (DrainSwitch, Drain) {
    let (sender, receiver) = watch::channel(Phase::Serving);
    (DrainSwitch(sender), Drain(receiver))
}

// === impl DrainSwitch ===

impl DrainSwitch {
    /// Goes on to `phase`, or stays where it is if that has passed.
    pub(crate) fn advance(&self, phase: Phase) {
        self.0.send_if_modified(|current| {
            let is_news = phase > *current;
            *current = phase.max(*current);
            is_news
        });
    }

    /// Begins the end.
    pub(crate) fn begin(&self) {
        self.advance(Phase::Draining);
    }
}

// === impl Drain ===

impl Drain {
    /// Where the server is in its life now.
    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// What a health check is told now.
    pub(crate) fn health(&self) -> Health {
        match self.phase() {
            Phase::Serving => Health::Serving,
            Phase::Leaving | Phase::Draining | Phase::Closing | Phase::Over => Health::Draining,
        }
    }

    /// Ready once health checks are told to send no more.
    pub(crate) async fn left(&mut self) {
        self.reached(Phase::Leaving).await;
    }

    /// Ready once the end has begun: finish what is under way.
    pub(crate) async fn begun(&mut self) {
        self.reached(Phase::Draining).await;
    }

    /// Ready once the end has begun and what had arrived by then can be read. A request may lie in its
    /// socket unseen, and who closes a connection that looks idle would throw it away.
    pub(crate) async fn begun_and_caught_up(&mut self) {
        self.begun().await;
        // The runtime looks at its sockets before it goes on with this.
        yield_now().await;
    }

    /// Ready once idle connections close, and what had arrived by then can be read.
    pub(crate) async fn closing_and_caught_up(&mut self) {
        self.closing().await;
        yield_now().await;
    }

    /// Ready once idle connections close.
    pub(crate) async fn closing(&mut self) {
        self.reached(Phase::Closing).await;
    }

    /// Closes the connection of an HTTP/1 answer once the server leaves. Its client asks another node then, and meets no
    /// connection that closes under its request.
    pub(crate) fn mark<B>(&self, answer: &mut Response<B>) {
        if self.health() == Health::Draining {
            answer.headers_mut().insert(CONNECTION, CLOSE);
        }
    }

    /// Leads `other` through the same phases; ready once there is no time left.
    pub(crate) async fn pass_on(mut self, other: &DrainSwitch) {
        loop {
            let phase = *self.0.borrow_and_update();
            other.advance(phase);
            if phase == Phase::Over {
                return;
            }
            // A switch that is gone has ended it all.
            if self.0.changed().await.is_err() {
                return other.advance(Phase::Over);
            }
        }
    }

    async fn reached(&mut self, phase: Phase) {
        // A switch that is gone has ended it all.
        let _ = self.0.wait_for(|current| *current >= phase).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, Phase, drain};

    #[tokio::test]
    async fn health_turns_before_the_end_begins() {
        let (switch, mut drain) = drain();
        assert_eq!(drain.health(), Health::Serving);
        switch.advance(Phase::Leaving);
        drain.left().await;
        assert_eq!(drain.health(), Health::Draining);
        assert_eq!(drain.phase(), Phase::Leaving);
        switch.begin();
        drain.begun().await;
    }

    #[test]
    fn no_phase_comes_back() {
        let (switch, drain) = drain();
        switch.advance(Phase::Over);
        switch.begin();
        assert_eq!(drain.phase(), Phase::Over);
    }

    #[tokio::test]
    async fn phases_are_passed_on_to_the_end() {
        let (first, phases) = drain();
        let (second, mut passed_on) = drain();
        let passing = tokio::spawn(async move {
            phases.pass_on(&second).await;
            second
        });
        first.advance(Phase::Leaving);
        passed_on.left().await;
        first.begin();
        passed_on.begun().await;
        first.advance(Phase::Closing);
        passed_on.closing_and_caught_up().await;
        first.advance(Phase::Over);
        passing.await.unwrap();
        assert_eq!(passed_on.phase(), Phase::Over);
    }

    #[tokio::test]
    async fn a_switch_that_is_gone_has_ended_it_all() {
        let (first, phases) = drain();
        let (second, mut passed_on) = drain();
        drop(first);
        phases.pass_on(&second).await;
        assert_eq!(passed_on.phase(), Phase::Over);
        drop(second);
        passed_on.begun().await;
    }
}
