//! From a path to an answer.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::{Body, Bytes, Incoming};
use tidegate_limiter::Store;
use tokio::time::timeout;

use super::Visit;
use super::authorize::authorize;
use crate::answer::{self, Refusal, Response};
use crate::wire::{Object, Question, RateLimitRequest};

/// Answers one HTTP request.
pub(super) async fn respond<S: Store>(request: Request<Incoming>, visit: &Visit<S>) -> Response {
    let answered = match request.uri().path() {
        "/json" => judge(request.into_body(), visit).await,
        "/v1/authorize" => authorize(request, visit).await,
        "/healthcheck" => Ok(answer::health(visit.drain.health())),
        path => Err(Refusal::NoSuchPath {
            path: path.to_owned(),
        }),
    };
    answered.unwrap_or_else(Refusal::into_response)
}

async fn judge<S: Store>(body: Incoming, visit: &Visit<S>) -> Result<Response, Refusal> {
    let (door, config) = (&visit.door, visit.config);
    let bytes = read(body, config.max_body_bytes, config.body_timeout).await?;
    if bytes.is_empty() {
        return Err(Refusal::BodyEmpty);
    }
    let Object(request): Object<RateLimitRequest<'_>> = serde_json::from_slice(&bytes)?;
    let question = Question::try_from(&request)?;
    let verdict = door
        .check(question.domain, &question.descriptors(), question.hits())
        .await?;
    Ok(answer::verdict(&verdict, &door.answers.headers))
}

/// Reads a whole body that is neither too large nor too slow.
pub(super) async fn read(
    body: Incoming,
    max_bytes: usize,
    most: Duration,
) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > max_bytes) {
        return Err(Refusal::BodyTooLarge { max_bytes });
    }
    let read = timeout(most, Limited::new(body, max_bytes).collect()).await;
    let collected = read.map_err(|_| Refusal::BodyTooSlow)?.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            Refusal::BodyTooLarge { max_bytes }
        } else {
            Refusal::BodyBroken
        }
    })?;
    Ok(collected.to_bytes())
}
