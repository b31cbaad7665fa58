//! `RateLimitResponse` as protobuf, written from a verdict.

use std::time::Duration;

use bytes::BytesMut;
use tidegate_answer::{Answers, PROBLEM_JSON};
use tidegate_limiter::{Answer, LimitStatus, Status, Verdict};
use tidegate_rules::MetadataValue;

use super::write::Writer;
use crate::wire::metadata::{DecidedBy, DynamicMetadata, Free};
use crate::wire::response::{UNLIMITED, saturate, until_reset};
use crate::wire::unit::Unit;

/// Writes `envoy.service.ratelimit.v3.RateLimitResponse` at the end of `out`.
pub(crate) fn write_response(verdict: &Verdict, answers: &Answers, out: &mut BytesMut) {
    let mut response = Writer(out);
    response.uint(1, code(verdict.answer()));
    for status in verdict.statuses() {
        response.message(2, |it| write_status(&status, it));
    }
    tidegate_answer::headers(verdict, &answers.headers, |name, value| {
        write_header(name, value, &mut response);
    });
    if let Some(problem) = answers.body(verdict, TOO_MANY_REQUESTS) {
        write_header("content-type", PROBLEM_JSON, &mut response);
        response.bytes(5, problem);
    }
    if let Some(metadata) = DynamicMetadata::of(verdict) {
        response.message(6, |it| write_metadata(&metadata, it));
    }
}

/// Writes the response to a question that has too much of something to be decided, with the reason in its metadata.
pub(crate) fn write_denial(reason: &str, out: &mut BytesMut) {
    let mut response = Writer(out);
    response.uint(1, code(Answer::Refused));
    response.message(6, |metadata| write_text("refused", reason, metadata));
}

/// What Envoy answers a refused request with, unless it is told otherwise.
const TOO_MANY_REQUESTS: u16 = 429;

/// `envoy.config.core.v3.HeaderValue`, to be added to the answer.
fn write_header(name: &str, value: &str, out: &mut Writer<'_>) {
    out.message(3, |header| {
        header.bytes(1, name);
        header.bytes(2, value);
    });
}

const fn code(answer: Answer) -> u64 {
    match answer {
        Answer::Allowed => 1,
        Answer::Refused => 2,
    }
}

fn write_status(status: &Status<'_>, out: &mut Writer<'_>) {
    out.uint(1, code(status.answer()));
    let deciding = status.deciding();
    if let Some(limit) = &deciding {
        write_limit(limit, out);
    }
    if let Some(decision) = deciding.as_ref().and_then(LimitStatus::decision) {
        out.uint(3, saturate(decision.remaining).into());
        out.message(4, |it| write_duration(until_reset(decision), it));
    } else if status.is_unlimited() {
        out.uint(3, UNLIMITED.into());
    }
}

fn write_limit(limit: &LimitStatus<'_>, out: &mut Writer<'_>) {
    let Some(quota) = limit.quota() else {
        return;
    };
    out.message(2, |it| {
        it.uint(1, saturate(quota.limit()).into());
        it.uint(2, Unit::of(quota.window()).number());
        if let Some(name) = limit.name() {
            it.bytes(3, name);
        }
    });
}

/// `google.protobuf.Duration`, whose seconds are signed.
fn write_duration(span: Duration, out: &mut Writer<'_>) {
    out.uint(1, span.as_secs().min(i64::MAX.unsigned_abs()));
    out.uint(2, span.subsec_nanos().into());
}

/// As a `google.protobuf.Struct`.
fn write_metadata(metadata: &DynamicMetadata<'_>, out: &mut Writer<'_>) {
    if let Some(decided_by) = &metadata.decided_by {
        write_field("decidedBy", out, |value| {
            value.message(5, |it| write_decided_by(decided_by, it));
        });
    }
    if let Some(delay) = &metadata.delay {
        write_text("delay", delay, out);
    }
    for (name, fact) in [("over", metadata.over), ("degraded", metadata.degraded)] {
        if let Some(truth) = fact {
            write_field(name, out, |value| value.uint_even_zero(4, truth.into()));
        }
    }
    if !metadata.limits.is_empty() {
        write_field("limits", out, |value| {
            value.message(6, |list| {
                for limit in &metadata.limits {
                    list.message(1, |it| it.bytes(3, limit));
                }
            });
        });
    }
    if let Some(Free(free)) = &metadata.metadata {
        write_field("metadata", out, |value| write_free(free, value));
    }
}

fn write_decided_by(decided_by: &DecidedBy<'_>, out: &mut Writer<'_>) {
    write_text("rule", decided_by.rule, out);
    if let Some(limit) = decided_by.limit {
        write_text("limit", limit, out);
    }
    write_text("retry", &decided_by.retry, out);
}

fn write_text(name: &str, text: &str, out: &mut Writer<'_>) {
    write_field(name, out, |value| value.bytes(3, text));
}

/// A field of a `Struct`: an entry of a map, whose value is a `google.protobuf.Value`.
fn write_field(name: &str, out: &mut Writer<'_>, write: impl FnOnce(&mut Writer<'_>)) {
    out.message(1, |entry| {
        entry.bytes(1, name);
        entry.message(2, write);
    });
}

/// A `google.protobuf.Value`. The rules bound how deep it goes.
fn write_free(value: &MetadataValue, out: &mut Writer<'_>) {
    match value {
        MetadataValue::Null => out.uint_even_zero(1, 0),
        MetadataValue::Number(number) => out.double(2, *number),
        MetadataValue::Text(text) => out.bytes(3, text.as_bytes()),
        MetadataValue::Bool(truth) => out.uint_even_zero(4, u64::from(*truth)),
        MetadataValue::Map(fields) => out.message(5, |map| {
            for (name, value) in fields {
                write_field(name, map, |it| write_free(value, it));
            }
        }),
        MetadataValue::List(values) => out.message(6, |list| {
            for value in values {
                list.message(1, |it| write_free(value, it));
            }
        }),
    }
}
