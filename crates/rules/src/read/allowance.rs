//! The allowance of a limit: hard, soft, elastic or postpaid.

use tidegate_algorithms::Allowance;

use super::fields::Fields;
use crate::code::Code;
use crate::findings::{Finding, Findings};

/// Fields of which a limit has at most one.
const KINDS: [&str; 3] = ["soft", "elastic", "postpaid"];

/// Fields that belong to another one, with a hint.
const PARTS: [(&str, &str, &str); 2] = [
    (
        "soft_for",
        "soft",
        "say by how much the limit may be exceeded: `soft: 10%`",
    ),
    (
        "max_debt",
        "postpaid",
        "write `postpaid: true`, or leave out `max_debt`",
    ),
];

/// Reads the allowance; `None` with a report if the fields contradict each other.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Allowance> {
    let is_postpaid = fields.flag("postpaid", findings)?;
    if has_conflict(fields, is_postpaid, findings) || has_stray(fields, is_postpaid, findings) {
        return None;
    }
    if fields.get("soft").is_some() {
        let over = fields.percent("soft", findings);
        let only_for = match fields.get("soft_for") {
            Some(_) => Some(fields.duration("soft_for", findings)?.inner),
            None => None,
        };
        return Some(Allowance::Soft {
            over: over?.inner,
            only_for,
        });
    }
    if fields.get("elastic").is_some() {
        return Some(Allowance::Elastic {
            over: fields.percent("elastic", findings)?.inner,
        });
    }
    if is_postpaid {
        let max_debt = match fields.get("max_debt") {
            Some(_) => Some(fields.count("max_debt", findings)?.inner),
            None => None,
        };
        return Some(Allowance::Postpaid { max_debt });
    }
    Some(Allowance::Hard)
}

/// Reports two kinds of allowance beside each other.
fn has_conflict(fields: &Fields<'_>, is_postpaid: bool, findings: &mut Findings) -> bool {
    let is_written = |name: &&&str| {
        let counts = **name != "postpaid" || is_postpaid;
        counts && fields.get(name).is_some()
    };
    let mut written = KINDS.iter().filter(is_written);
    let (Some(first), Some(second)) = (written.next(), written.next()) else {
        return false;
    };
    if let Some(pair) = fields.get(second) {
        let message = format!("`{second}` and `{first}` exclude each other");
        findings.push(
            Finding::error(Code::Conflict, pair.key.span, message)
                .hint("a limit is hard, soft, elastic or postpaid"),
        );
    }
    true
}

/// Reports a field without the one that it belongs to, and a debt that a log cannot have.
fn has_stray(fields: &Fields<'_>, is_postpaid: bool, findings: &mut Findings) -> bool {
    for (part, whole, hint) in PARTS {
        let has_whole = match whole {
            "postpaid" => is_postpaid,
            _ => fields.get(whole).is_some(),
        };
        if let (false, Some(pair)) = (has_whole, fields.get(part)) {
            let message = format!("`{part}` needs `{whole}`");
            let finding = Finding::error(Code::NotApplicable, pair.key.span, message);
            findings.push(finding.hint(hint));
            return true;
        }
    }
    let algorithm = fields
        .get("algorithm")
        .and_then(|pair| pair.value.as_text());
    let is_log = algorithm.is_some_and(|name| name.eq_ignore_ascii_case("sliding_log"));
    if let (true, Some(pair)) = (is_log, fields.get("max_debt")) {
        let message =
            "`max_debt` means nothing to `sliding_log`: it keeps no more entries than its limit";
        let finding = Finding::error(Code::NotApplicable, pair.key.span, message);
        findings.push(finding.hint("leave it out"));
        return true;
    }
    false
}
