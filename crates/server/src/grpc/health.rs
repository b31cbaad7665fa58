//! `grpc.health.v1.Health`: whether to send calls here.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use tidegate_limiter::Store;
use tokio::time::timeout;

use super::answer::{Answer, Gone};
use super::call::Office;
use super::memory::AnswerBytes;
use super::message::{Messages, framed};
use super::method::RATE_LIMIT;
use super::status::{Code, Status};
use crate::drain::Health;
use crate::wire::protobuf::{Malformed, Reader, Writer};
use crate::within::within;

/// The services whose health is known: the server as a whole, the name that envoyproxy/ratelimit has for
/// itself, and the service. All are as healthy as the server.
const SERVICES: [&str; 3] = ["", "ratelimit", RATE_LIMIT];

/// `HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    Yes,
    No,
    /// There is no such service.
    Unknown,
}

/// Answers `Check`.
pub(super) async fn check<S: Store>(
    mut messages: Messages<'_>,
    office: &Office<S>,
) -> Result<Bytes, Status> {
    let message = messages.only().await?;
    match Serving::of(service(&message)?, office.drain.health()) {
        Serving::Unknown => Err(Status::new(Code::NotFound, "unknown service")),
        serving => Ok(serving.message()),
    }
}

/// Answers `Watch`: the state now, and once more when it changes. It changes once, at the end.
pub(super) async fn watch<S: Store>(
    mut messages: Messages<'_>,
    respond: &mut SendResponse<AnswerBytes>,
    office: &Office<S>,
) {
    let read = within(office.config.call_timeout, pin!(messages.only())).await;
    let message = match read.unwrap_or_else(|| Err(Status::late())) {
        Ok(message) => message,
        Err(status) => return status.send(respond),
    };
    let service = match service(&message) {
        Ok(service) => SERVICES.into_iter().find(|it| *it == service),
        Err(malformed) => return Status::from(malformed).send(respond),
    };
    // A watch may last for hours, and its message may be large. It is counted, and no longer charged as a call that waits.
    drop((message, messages));
    let watch = match office.memory.watch() {
        Ok(watch) => watch,
        Err(status) => return status.send(respond),
    };
    if let Some(answer) = Answer::begin(respond) {
        let service = service.unwrap_or("unknown");
        // A client that is gone wants to know no more.
        let _ = tell(service, answer, office).await;
    }
    drop(watch);
}

/// Tells a client the health of a service until the server ends, for at most the time that a connection may be idle: a client that is
/// still there watches again. One that has no room for a message is gone after the write timeout.
async fn tell<S: Store>(service: &str, mut answer: Answer, office: &Office<S>) -> Result<(), Gone> {
    let mut drain = office.drain.clone();
    let first = Serving::of(service, drain.health());
    answer.send(first.message(), office).await?;
    let left = answer.unless_gone(drain.left());
    let left = timeout(office.config.idle_timeout, left).await;
    let Ok(left) = left else {
        answer.end(&Status::new(
            Code::Unavailable,
            "the watch has lasted its time",
        ));
        return Ok(());
    };
    left?;
    let last = Serving::of(service, Health::Draining);
    if last != first {
        answer.send(last.message(), office).await?;
    }
    answer.unless_gone(drain.begun()).await?;
    answer.end(&Status::draining());
    Ok(())
}

// === impl Serving ===

impl Serving {
    fn of(service: &str, health: Health) -> Self {
        match health {
            _ if !SERVICES.contains(&service) => Self::Unknown,
            Health::Serving => Self::Yes,
            Health::Draining => Self::No,
        }
    }

    fn message(self) -> Bytes {
        let number = match self {
            Self::Yes => 1,
            Self::No => 2,
            Self::Unknown => 3,
        };
        framed(&mut BytesMut::new(), |out| Writer(out).uint(1, number))
    }
}

/// The service that is asked about.
fn service(message: &[u8]) -> Result<&str, Malformed> {
    let mut service = "";
    let mut fields = Reader::new(message);
    while let Some((field, value)) = fields.next()? {
        if field == 1 {
            service = value.text(field)?;
        }
    }
    Ok(service)
}
