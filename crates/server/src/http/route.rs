//! From a path to an answer.

use hyper::Request;
use hyper::body::Incoming;
use tidegate_limiter::Store;

use super::Visit;
use super::authorize::authorize;
use super::check::check;
use crate::answer::{self, Refusal, Response};
use crate::wire::{Object, Question, RateLimitRequest};

const SAMPLE: &str = "a rate limit request, `tidegate serve --help` shows one";

/// Answers one HTTP request.
pub(super) async fn respond<S: Store + 'static>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Response {
    let answered = match request.uri().path() {
        "/json" => judge(request, visit).await,
        "/v1/check" => check(request, visit).await,
        "/v1/authorize" => authorize(request, visit).await,
        "/healthcheck" => Ok(health(visit)),
        path => Err(Refusal::NoSuchPath {
            path: path.to_owned(),
        }),
    };
    answered.unwrap_or_else(|refusal| {
        // A path that is not there is nobody's request, and the limiter's errors are counted by kind.
        if !matches!(refusal, Refusal::NoSuchPath { .. } | Refusal::Limiter(_)) {
            visit.door.recorder.malformed();
        }
        refusal.into_response()
    })
}

fn health<S: Store>(visit: &Visit<S>) -> Response {
    let store = visit.door.limiter.store().health();
    answer::health(visit.drain.health(), store)
}

/// Takes any method and any content type, as the reference does.
async fn judge<S: Store + 'static>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let bytes = visit.read(body).await?;
    if bytes.is_empty() {
        return Err(Refusal::BodyEmpty { sample: SAMPLE });
    }
    let message = serde_json::from_slice(&bytes).map_err(Refusal::NotAMessage)?;
    let Object(message): Object<RateLimitRequest<'_>> = message;
    let question = Question::try_from(&message)?;
    let (descriptors, hits) = (question.descriptors(), question.hits());
    let verdict = visit
        .check(&head.headers, question.domain, &descriptors, hits)
        .await?;
    Ok(answer::verdict(&verdict, &visit.door.answers.headers))
}
