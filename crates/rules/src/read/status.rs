//! `count_status`: the statuses of responses that a limit counts.

use std::time::Duration;

use tidegate_algorithms::{Meter, Quota};

use super::fields::Fields;
use crate::code::Code;
use crate::draft::{DraftLimit, DraftTerms};
use crate::findings::{Finding, Findings, quote};
use crate::node::{Kind, Node};
use crate::status_set::StatusSet;

/// The most elements of a list; there are 500 statuses, and ranges for many of them.
const MOST_ELEMENTS: usize = 64;

/// A token that drips in within this time is back before many a response is.
const SLOW_TOKEN: Duration = Duration::from_secs(1);

const HINT: &str = "write statuses such as `[402, 4xx, 500-599]`";

/// Reads the list; `None` if there is none, or nothing in it can be read.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<StatusSet> {
    let pair = fields.get("count_status")?;
    let Kind::List(nodes) = &pair.value.kind else {
        let message = format!("`count_status` takes a list, found {}", pair.value.shape());
        findings.push(Finding::error(Code::WrongShape, pair.value.span, message).hint(HINT));
        return None;
    };
    if nodes.is_empty() {
        let message = "`count_status` names no status, so the limit would count nothing";
        findings.push(Finding::error(Code::BadValue, pair.value.span, message).hint(HINT));
    }
    if nodes.len() > MOST_ELEMENTS {
        let message = format!("`count_status` has more than {MOST_ELEMENTS} elements");
        let finding = Finding::error(Code::TooLarge, pair.value.span, message);
        findings.push(finding.hint("join neighbours to ranges such as `500-599`"));
        return None;
    }
    let mut set = StatusSet::default();
    for node in nodes {
        add(node, &mut set, findings);
    }
    (set != StatusSet::default()).then_some(set)
}

fn add(node: &Node, set: &mut StatusSet, findings: &mut Findings) {
    let Some(text) = node.as_text() else {
        let message = format!("a status is a number, found {}", node.shape());
        findings.push(Finding::error(Code::WrongShape, node.span, message).hint(HINT));
        return;
    };
    if !set.add(text) {
        let message = format!("{} names no status from 100 to 599", quote(text));
        findings.push(Finding::error(Code::BadValue, node.span, message).hint(HINT));
    }
}

/// Warns of buckets that get back next to nothing of a request with another status: what is refilled while
/// the response is under way is not refunded.
pub(super) fn report_buckets(fields: &Fields<'_>, limit: &DraftLimit, findings: &mut Findings) {
    let (Some(DraftTerms::Quota(quota)), Some(pair)) = (&limit.terms, fields.get("count_status"))
    else {
        return;
    };
    let message = match quota.meter() {
        Meter::LeakyBucket(_) => {
            "a queue takes back only its last departure, so most requests count whatever the status"
        }
        Meter::TokenBucket(_) if interval(quota) < SLOW_TOKEN => {
            "what the bucket refills while a response is under way is not refunded, so requests \
             with other statuses use it up too"
        }
        _ => return,
    };
    findings.push(
        Finding::warning(Code::NotApplicable, pair.key.span, message)
            .hint("count by status with `fixed_window`, `sliding_log` or `sliding_counter`"),
    );
}

/// The time in which one token drips in.
fn interval(quota: &Quota) -> Duration {
    let limit = u128::from(quota.limit().max(1));
    let nanos = quota.window().as_nanos() / limit;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
