//! From a path to an answer.

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use tidegate_limiter::Store;
use tracing::warn;

use super::Visit;
use super::authorize::authorize;
use super::check::check;
use crate::answer::{self, Refusal, Response, with_causes};
use crate::cross_site::is_of_web_page;
use crate::wire::{Object, Question, RateLimitRequest};

/// Characters of a reason that are logged.
const MAX_LOGGED: usize = 300;

/// The document that describes these paths. A test holds it against the server.
const OPENAPI: &str = include_str!("openapi.json");

const SAMPLE: &str = "a rate limit request, `tidegate serve --help` shows one";

/// Answers one HTTP request.
pub(super) async fn respond<S: Store + 'static>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Response {
    let answered = match request.uri().path() {
        "/json" => judge(request, visit).await,
        "/v1/check" => check(request, visit).await,
        "/v1/authorize" => authorize(request, visit)
            .await
            .inspect_err(|refusal| log_rejected_question(refusal, visit)),
        "/healthcheck" => only_get(request.method()).map(|()| health(visit)),
        "/v1/openapi.json" => only_get(request.method()).map(|()| answer::document(OPENAPI)),
        path => Err(Refusal::NoSuchPath {
            path: path.to_owned(),
        }),
    };
    answered.unwrap_or_else(|refusal| {
        // A path that is not there is nobody's request, and the limiter's errors are counted by kind.
        if !matches!(refusal, Refusal::NoSuchPath { .. } | Refusal::Limiter(_)) {
            visit.core.recorder.malformed();
        }
        refusal.into_response()
    })
}

/// Logs a question of a proxy that is answered 400: the proxy throws the reason away, and its clients see 500.
fn log_rejected_question<S>(refusal: &Refusal, visit: &Visit<S>) {
    if refusal.status() != StatusCode::BAD_REQUEST {
        return;
    }
    if let Some(n_questions) = visit.core.rejected_questions.count() {
        let reason: String = with_causes(refusal).chars().take(MAX_LOGGED).collect();
        // As a quoted string: parts of it may come from a client.
        warn!(n_questions, ?reason, "/v1/authorize answered 400");
    }
}

fn only_get(method: &Method) -> Result<(), Refusal> {
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(Refusal::OtherMethod {
            allowed: "GET, HEAD",
        }),
    }
}

fn health<S: Store>(visit: &Visit<S>) -> Response {
    let store = visit.core.limiter.store().health();
    answer::health(visit.drain.health(), store)
}

/// Takes any method and any content type, as the reference does, but nothing that a page of another site made a browser
/// send: it could charge and refund whom it likes.
async fn judge<S: Store + 'static>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Result<Response, Refusal> {
    if is_of_web_page(request.headers()) {
        return Err(Refusal::OfWebPage);
    }
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
    Ok(answer::verdict(&verdict, &visit.core.answers.headers))
}
