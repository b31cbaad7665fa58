//! The body of a refusal: problem details (RFC 9457).

use serde::Serialize;
use tidegate_limiter::{Answer, LimitStatus, Mode, Ruling, Verdict};

use crate::policy::{Policies, Policy};
use crate::seconds;

/// The media type of the body that [`problem`] gives.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The problem type of a used up quota.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The problem type of a caller that an operator has banned.
const ABNORMAL_USAGE: &str =
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

/// Most bodies are no longer.
const USUAL_BYTES: usize = 512;

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Problem<'a> {
    /// Absent where the limits could not be checked: nobody knows of a quota then.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violated_policies: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

/// The body of a refusal that goes out with `status`: which limits refuse, and when to come back, in JSON
/// of at most 16 KiB. `None` for a verdict that is no refusal. `instance` is the URI of this decision, if it
/// has one.
pub fn problem(verdict: &Verdict, status: u16, instance: Option<&str>) -> Option<Vec<u8>> {
    if verdict.answer() == Answer::Allowed {
        return None;
    }
    let policies = Policies::of(verdict);
    let deciding = verdict.deciding();
    let is_decided = deciding.is_some_and(|it| it.decision().is_some());
    let (kind, title) = match verdict.ban() {
        Some(_) => (Some(ABNORMAL_USAGE), "Abnormal Usage Detected"),
        None if is_decided => (Some(QUOTA_EXCEEDED), "Quota Exceeded"),
        None => (None, phrase(status)),
    };
    let problem = Problem {
        kind,
        title,
        status,
        detail: refusal(verdict, &policies),
        instance,
        violated_policies: violated(verdict, &policies),
        retry_after: seconds::retry_after(verdict),
    };
    let mut json = Vec::with_capacity(USUAL_BYTES);
    // Text and numbers are always JSON.
    serde_json::to_writer(&mut json, &problem).ok()?;
    Some(json)
}

/// Why a refused request is, and when to come back, in a sentence. The policies are the verdict's own.
pub fn refusal(verdict: &Verdict, policies: &Policies<'_>) -> String {
    let come_back = seconds::retry_after(verdict).map(|seconds| {
        let s = if seconds == 1 { "" } else { "s" };
        format!("come back in {seconds} second{s}")
    });
    if verdict.ban().is_some() {
        return match come_back {
            Some(come_back) => format!("the caller is banned; {come_back}"),
            None => "the caller is banned until the ban is lifted".to_owned(),
        };
    }
    let deciding = verdict.deciding();
    let named = deciding.as_ref().and_then(|status| policies.find(status));
    let decision = deciding.as_ref().and_then(LimitStatus::decision);
    if deciding.as_ref().is_some_and(LimitStatus::is_hidden) && decision.is_some() {
        let come_back = come_back
            .as_deref()
            .unwrap_or("the same request is never allowed");
        return format!("a limit is used up; {come_back}");
    }
    let (Some(policy), Some(_)) = (named, decision) else {
        let come_back = come_back.as_deref().unwrap_or("try again later");
        return format!(
            "the limits could not be checked, and the rules refuse what is not checked; {come_back}"
        );
    };
    let (name, limit) = (&policy.name, policy.limit);
    match come_back {
        Some(come_back) => format!("the limit {name:?} is used up; {come_back}"),
        None if limit == 0 => format!("the limit {name:?} lets nothing pass"),
        None => format!("the request costs more than the limit {name:?} ever lets pass at once"),
    }
}

/// The names of the policies that refuse the request. A quota limit does so only with all others.
fn violated<'a>(verdict: &Verdict, policies: &'a Policies<'_>) -> Vec<&'a str> {
    let is_quota = |policy: &&Policy<'_>| policy.status.mode() == Mode::Quota;
    // Hidden ones included.
    let mut quotas = verdict.limits().filter(|status| {
        status.mode() == Mode::Quota
            && matches!(status.ruling(), Ruling::Decided(_) | Ruling::Undecided(_))
    });
    let all_quotas_refuse = quotas.all(|status| status.is_refused());
    policies
        .told()
        .filter(|policy| policy.status.is_refused() && (all_quotas_refuse || !is_quota(policy)))
        .map(|policy| policy.name.as_str())
        .collect()
}

/// The title of a problem without a type is the phrase of its status.
const fn phrase(status: u16) -> &'static str {
    match status {
        403 => "Forbidden",
        503 => "Service Unavailable",
        _ => "Too Many Requests",
    }
}
