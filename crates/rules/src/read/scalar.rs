//! Single values: text, counts, flags, durations, percentages and words.

use std::time::Duration;

use tidegate_algorithms::Percent;

use crate::code::Code;
use crate::duration::{self, DurationFault};
use crate::findings::{Finding, Findings, quote};
use crate::hint::{did_you_mean, one_of};
use crate::node::{Pair, Scalar, Style};
use crate::span::Spanned;

/// Any scalar as it is written, as Go's YAML gives it for a string field.
pub(super) fn text(pair: &Pair, findings: &mut Findings) -> Option<Spanned<String>> {
    scalar(pair, findings).map(|scalar| Spanned::new(pair.value.span, scalar.text.clone()))
}

/// A whole number from 0 to 2^64 - 1.
pub(super) fn count(pair: &Pair, findings: &mut Findings) -> Option<Spanned<u64>> {
    let scalar = scalar(pair, findings)?;
    let digits = scalar.text.replace('_', "");
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let hint = if !is_number {
        "write digits only, such as `100`".to_owned()
    } else if scalar.style == Style::Text {
        "leave out the quotes".to_owned()
    } else if digits.len() > 1 && digits.starts_with('0') {
        // Older YAML, and Go's to this day, take it for octal.
        "leave out the leading zeros".to_owned()
    } else if let Ok(count) = digits.parse() {
        return Some(Spanned::new(pair.value.span, count));
    } else {
        format!("the most is {}", u64::MAX)
    };
    bad_value(pair, scalar, "a whole number", hint, findings);
    None
}

/// A boolean, in any of the spellings that YAML has had.
pub(super) fn flag(pair: &Pair, findings: &mut Findings) -> Option<bool> {
    let scalar = scalar(pair, findings)?;
    match (scalar.style, scalar.text.to_ascii_lowercase().as_str()) {
        (Style::Plain, "true" | "yes" | "on") => Some(true),
        (Style::Plain, "false" | "no" | "off") => Some(false),
        _ => {
            let hint = "write `true` or `false`".to_owned();
            bad_value(pair, scalar, "true or false", hint, findings);
            None
        }
    }
}

/// A duration such as `1m30s`.
pub(super) fn duration(pair: &Pair, findings: &mut Findings) -> Option<Spanned<Duration>> {
    let scalar = scalar(pair, findings)?;
    let fault = match duration::parse(&scalar.text) {
        Ok(duration) => return Some(Spanned::new(pair.value.span, duration)),
        Err(fault) => fault,
    };
    let hint = match fault {
        DurationFault::NoUnit => format!("say of what: `{}s` or `{}ms`", scalar.text, scalar.text),
        DurationFault::Malformed => {
            "write numbers with `ms`, `s`, `m`, `h`, `d` or `w`, such as `90s` or `1m30s`"
                .to_owned()
        }
        DurationFault::Disordered => {
            "write each unit once, the largest first, such as `1h30m`".to_owned()
        }
        DurationFault::TooLong => "the longest window is ten years".to_owned(),
    };
    bad_value(pair, scalar, "a duration", hint, findings);
    None
}

/// A whole percentage such as `10%`.
pub(super) fn percent(pair: &Pair, findings: &mut Findings) -> Option<Spanned<Percent>> {
    let scalar = scalar(pair, findings)?;
    let digits = scalar.text.strip_suffix('%').unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let percent = is_number.then(|| digits.parse::<u32>().ok()).flatten();
    if let Some(percent) = percent.filter(|percent| *percent > 0) {
        return Some(Spanned::new(pair.value.span, Percent(percent)));
    }
    let hint = "write a whole percentage of at least 1, such as `10%`".to_owned();
    bad_value(pair, scalar, "a percentage", hint, findings);
    None
}

/// One of a few words, whatever their case.
pub(super) fn word<T: Copy>(
    pair: &Pair,
    words: &[(&'static str, T)],
    findings: &mut Findings,
) -> Option<Spanned<T>> {
    let scalar = scalar(pair, findings)?;
    let found = words
        .iter()
        .find(|(word, _)| scalar.text.eq_ignore_ascii_case(word));
    if let Some((_, meaning)) = found {
        return Some(Spanned::new(pair.value.span, *meaning));
    }
    let known = || words.iter().map(|(word, _)| *word);
    let hint = did_you_mean(&scalar.text, known()).unwrap_or_else(|| one_of(known()));
    let name = pair.key.as_text().unwrap_or_default().to_lowercase();
    let message = format!("{} is no `{name}`", quote(&scalar.text));
    findings.push(Finding::error(Code::BadValue, pair.value.span, message).hint(hint));
    None
}

fn scalar<'n>(pair: &'n Pair, findings: &mut Findings) -> Option<&'n Scalar> {
    let scalar = pair.value.as_scalar();
    if scalar.is_none() {
        let name = pair.key.as_text().unwrap_or_default();
        let message = format!(
            "{} takes a single value, found {}",
            quote(name),
            pair.value.shape()
        );
        findings.push(Finding::error(Code::WrongShape, pair.value.span, message));
    }
    scalar
}

fn bad_value(pair: &Pair, scalar: &Scalar, expected: &str, hint: String, findings: &mut Findings) {
    let name = pair.key.as_text().unwrap_or_default();
    let message = format!(
        "{} takes {expected}, not {}",
        quote(name),
        quote(&scalar.text)
    );
    let finding = Finding::error(Code::BadValue, pair.value.span, message);
    findings.push(finding.hint(hint));
}
