//! The body of a refusal: problem details (RFC 9457).

use std::fmt::{self, Write};

use itoa::Buffer;
use tidegate_limiter::{Answer, LimitStatus, Mode, Ruling, Verdict};

use crate::policy::{Policies, Policy, write_escaped, write_quoted};
use crate::seconds;

/// The media type of the body that [`problem`] gives.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The problem type of a used up quota.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The problem type of a caller that an operator has banned.
const ABNORMAL_USAGE: &str =
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

/// The usual size of a body, so that it is allocated once.
const USUAL_BYTES: usize = 512;

/// The inside of a string of JSON.
struct EscapedText<'a>(&'a mut String);

/// The body of a refusal that goes out with `status`: which limits refuse, and when to come back, in JSON
/// of at most 16 KiB. `None` for a verdict that is no refusal. `instance` is the URI of this decision, if it
/// has one: printable ASCII.
pub fn problem(verdict: &Verdict, status: u16, instance: Option<&str>) -> Option<Vec<u8>> {
    if verdict.answer() == Answer::Allowed {
        return None;
    }
    let policies = Policies::of(verdict);
    let mut json = String::with_capacity(USUAL_BYTES);
    // Writing to a string does not fail.
    let _ = write_problem(&mut json, verdict, &policies, status, instance);
    Some(json.into_bytes())
}

/// Writes the object by hand: a denial costs most by its body, and a serializer looks at each byte of the fixed part again. All text in
/// it is printable ASCII.
fn write_problem(
    json: &mut String,
    verdict: &Verdict,
    policies: &Policies<'_>,
    status: u16,
    instance: Option<&str>,
) -> fmt::Result {
    let (deciding, seconds) = (verdict.deciding(), seconds::retry_after(verdict));
    let is_decided = || deciding.is_some_and(|it| it.decision().is_some());
    let (kind, title) = match verdict.ban() {
        Some(_) => (Some(ABNORMAL_USAGE), "Abnormal Usage Detected"),
        None if is_decided() => (Some(QUOTA_EXCEEDED), "Quota Exceeded"),
        // The limits could not be checked, so nobody knows of a quota.
        None => (None, phrase(status)),
    };
    json.push('{');
    if let Some(kind) = kind {
        json.push_str("\"type\":\"");
        json.push_str(kind);
        json.push_str("\",");
    }
    json.push_str("\"title\":\"");
    json.push_str(title);
    json.push_str("\",\"status\":");
    json.push_str(Buffer::new().format(status));
    json.push_str(",\"detail\":\"");
    let told = (deciding.as_ref(), seconds);
    write_refusal(json, verdict, policies, told, |json, name| {
        json.push_str("\\\"");
        write_escaped(&mut EscapedText(json), name)?;
        json.push_str("\\\"");
        Ok(())
    })?;
    json.push('"');
    if let Some(instance) = instance {
        // A URI has no character that needs an escape.
        json.push_str(",\"instance\":\"");
        json.push_str(instance);
        json.push('"');
    }
    let mut separator = ",\"violated-policies\":[";
    for name in violated(verdict, policies) {
        json.push_str(separator);
        write_quoted(json, name)?;
        separator = ",";
    }
    if separator == "," {
        json.push(']');
    }
    if let Some(seconds) = seconds {
        json.push_str(",\"retry-after\":");
        json.push_str(Buffer::new().format(seconds));
    }
    json.push('}');
    Ok(())
}

/// Writes a sentence with the reason for the denial and the time to come back. The policies are the verdict's own.
pub fn refusal(verdict: &Verdict, policies: &Policies<'_>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let (deciding, seconds) = (verdict.deciding(), seconds::retry_after(verdict));
    let told = (deciding.as_ref(), seconds);
    let _ = write_refusal(&mut text, verdict, policies, told, write_quoted);
    text
}

/// Writes the sentence, and the name of a limit in it by `write_name`; the rest needs no escapes anywhere.
fn write_refusal(
    to: &mut String,
    verdict: &Verdict,
    policies: &Policies<'_>,
    (deciding, seconds): (Option<&LimitStatus<'_>>, Option<u64>),
    write_name: impl FnOnce(&mut String, &str) -> fmt::Result,
) -> fmt::Result {
    let decision = deciding.and_then(LimitStatus::decision);
    let named = deciding.and_then(|status| policies.find(status));
    let without_time = if verdict.ban().is_some() {
        to.push_str("the caller is banned");
        " until the ban is lifted"
    } else if deciding.is_some_and(LimitStatus::is_hidden) && decision.is_some() {
        to.push_str("a limit is used up");
        "; the same request is never allowed"
    } else if let (Some(policy), Some(_)) = (named, decision) {
        if seconds.is_none() && policy.limit > 0 {
            to.push_str("the request costs more than ");
        }
        to.push_str("the limit ");
        write_name(to, &policy.name)?;
        match seconds {
            Some(_) => {
                to.push_str(" is used up");
                ""
            }
            None if policy.limit == 0 => " lets nothing pass",
            None => " ever lets pass at once",
        }
    } else {
        to.push_str("the limits could not be checked, and the rules refuse what is not checked");
        "; try again later"
    };
    let Some(seconds) = seconds else {
        to.push_str(without_time);
        return Ok(());
    };
    to.push_str("; come back in ");
    to.push_str(Buffer::new().format(seconds));
    to.push_str(if seconds == 1 { " second" } else { " seconds" });
    Ok(())
}

// === impl EscapedText ===

impl Write for EscapedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_escaped(self.0, text)
    }
}

/// The names of the policies that refuse the request. A quota limit does so only with all others.
fn violated<'a>(verdict: &Verdict, policies: &'a Policies<'_>) -> impl Iterator<Item = &'a str> {
    let is_quota = |policy: &Policy<'_>| policy.status.mode() == Mode::Quota;
    // Hidden ones included.
    let mut quotas = verdict.limits().filter(|status| {
        status.mode() == Mode::Quota
            && matches!(status.ruling(), Ruling::Decided(_) | Ruling::Undecided(_))
    });
    let all_quotas_refuse = quotas.all(|status| status.is_refused());
    policies
        .told()
        .filter(move |policy| {
            policy.status.is_refused() && (all_quotas_refuse || !is_quota(policy))
        })
        .map(|policy| &*policy.name)
}

/// The title of a problem without a type is the phrase of its status.
const fn phrase(status: u16) -> &'static str {
    match status {
        403 => "Forbidden",
        503 => "Service Unavailable",
        _ => "Too Many Requests",
    }
}
