//! `POST /v1/check`: one check or several, in JSON of our own.

use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use tidegate_limiter::{LimiterError, Store, Verdict};

use super::Visit;
use crate::answer::{self, Refusal, Response};
use crate::check::{Check, CheckRequest, Json, body_text};
use crate::cross_site::is_of_web_page;

const SAMPLE: &str = r#"a check, such as {"domain": "api", "descriptors": [{"user_id": "42"}]}"#;

pub(super) async fn check<S: Store>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Result<Response, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::OtherMethod { allowed: "POST" });
    }
    if is_of_web_page(request.headers()) {
        return Err(Refusal::OfWebPage);
    }
    let (head, body) = request.into_parts();
    let bytes = visit.read(body).await?;
    if bytes.is_empty() {
        return Err(Refusal::BodyEmpty { sample: SAMPLE });
    }
    let text = body_text(&bytes);
    let body: Json<'_> = serde_json::from_str(&text).map_err(Refusal::NotJson)?;
    match CheckRequest::read(&body)? {
        CheckRequest::One(check) => {
            let verdict = judge(&check, &head.headers, visit).await?;
            Ok(answer::checked(&verdict, &visit.core.answers.headers))
        }
        CheckRequest::Batch(checks) => {
            let mut judged = Vec::with_capacity(checks.len());
            for check in &checks {
                judged.push(judge(check, &head.headers, visit).await);
            }
            Ok(answer::checked_batch(&judged))
        }
    }
}

async fn judge<S: Store>(
    check: &Check<'_>,
    headers: &HeaderMap,
    visit: &Visit<S>,
) -> Result<Verdict, LimiterError> {
    // Every descriptor says what it costs.
    let hits = 1;
    visit
        .check(headers, check.domain, &check.descriptors(), hits)
        .await
}
