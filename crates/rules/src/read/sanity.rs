//! Numbers that are valid and yet hardly meant.

use tidegate_algorithms::{Algorithm, Allowance, Percent, Quota};

use super::fields::Fields;
use crate::code::Code;
use crate::duration::{self, per};
use crate::findings::{Finding, Findings};

/// A burst of more than so many limits drowns the limit. One request per second with a burst of
/// a minute's worth is a common setting; a hundred windows at once is none.
const MAX_BURST_WINDOWS: u64 = 100;

/// Warns about a limit that its burst makes meaningless, and an allowance of less than a request.
pub(super) fn check(fields: &Fields<'_>, quota: &Quota, findings: &mut Findings) {
    if let Algorithm::TokenBucket {
        burst: Some(burst), ..
    } = quota.algorithm()
    {
        check_burst(fields, quota, burst, findings);
    }
    let (name, over) = match quota.allowance() {
        Allowance::Hard | Allowance::Postpaid { .. } => return,
        Allowance::Soft { over, .. } => ("soft", over),
        Allowance::Elastic { over } => ("elastic", over),
    };
    check_allowance(fields, quota, name, over, findings);
}

fn check_burst(fields: &Fields<'_>, quota: &Quota, burst: u64, findings: &mut Findings) {
    let Some(pair) = fields.get("burst") else {
        return;
    };
    let span = pair.value.span;
    if quota.limit() == 0 {
        let message = "a limit of 0 refuses everything, whatever the burst";
        findings.push(Finding::warning(Code::MeaninglessLimit, span, message));
    } else if burst / quota.limit() > MAX_BURST_WINDOWS {
        let message = format!(
            "a burst of {burst} makes {} per {} meaningless: it is {} windows' worth at once",
            quota.limit(),
            per(quota.window()),
            burst / quota.limit(),
        );
        let fill = quota.window().as_nanos() * u128::from(burst) / u128::from(quota.limit());
        let fill = u64::try_from(fill)
            .ok()
            .map(std::time::Duration::from_nanos);
        let hint = fill.map(|fill| {
            format!(
                "an empty bucket takes {} to fill; is that meant?",
                duration::format(fill)
            )
        });
        findings.push(Finding::warning(Code::MeaninglessLimit, span, message).maybe_hint(hint));
    }
}

fn check_allowance(
    fields: &Fields<'_>,
    quota: &Quota,
    name: &str,
    over: Percent,
    findings: &mut Findings,
) {
    let base = match quota.algorithm() {
        Algorithm::TokenBucket {
            burst: Some(size), ..
        }
        | Algorithm::LeakyBucket { queue: Some(size) } => size,
        _ => quota.limit(),
    };
    let extra = u128::from(base) * u128::from(over.0) / 100;
    if extra > 0 {
        return;
    }
    let Some(pair) = fields.get(name) else { return };
    let message = format!(
        "{}% of {base} is less than one request, so the limit is hard",
        over.0
    );
    findings.push(Finding::warning(
        Code::MeaninglessAllowance,
        pair.value.span,
        message,
    ));
}
