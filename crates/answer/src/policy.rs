//! The limits of a request as clients know them: by name.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use tidegate_limiter::{LimitStatus, Mode, Ruling, Verdict};

use crate::seconds;

/// The limits that took part in a request, in order, each with a name. One that is unlimited or was
/// replaced took none, and hidden ones are not among them.
#[derive(Debug)]
pub struct Policies<'a>(Vec<Policy<'a>>);

/// One limit that took part, and the name by which clients know it.
#[derive(Debug)]
pub struct Policy<'a> {
    /// Printable ASCII, and no other policy of the request has it.
    pub name: Cow<'a, str>,
    /// Where the name is from.
    pub naming: Naming,
    /// Per window, as configured.
    pub limit: u64,
    /// Seconds, rounded up: over a longer window the same limit promises less, never more.
    pub window: u64,
    /// What it said.
    pub status: LimitStatus<'a>,
}

/// Where the name of a policy is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The operator gave it.
    Given,
    /// It is made of the window.
    Made,
}

/// A string of structured fields (RFC 9651): in quotes, and escaped. Its text is printable ASCII.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SfString<'a>(pub(crate) &'a str);

/// The longest name in characters, before a number that tells it from another. With the 64 limits that
/// a request may have, all names together stay below 8 KiB.
const MAX_NAME: usize = 64;

/// The largest integer of structured fields (RFC 9651, section 3.3.1): fifteen digits.
const MAX_SF_INTEGER: u64 = 999_999_999_999_999;

/// Windows with a word of their own.
const WORDS: [(u64, &str); 7] = [
    (1, "per-second"),
    (60, "per-minute"),
    (3_600, "per-hour"),
    (86_400, "per-day"),
    (7 * 86_400, "per-week"),
    (30 * 86_400, "per-month"),
    (365 * 86_400, "per-year"),
];

/// `number`, or the largest that structured fields can carry.
pub(crate) fn sf_integer(number: u64) -> u64 {
    number.min(MAX_SF_INTEGER)
}

// === impl Policies ===

impl<'a> Policies<'a> {
    /// Names the limits of `verdict`.
    pub fn of(verdict: &'a Verdict) -> Self {
        let mut policies = Self(Vec::new());
        for status in verdict.limits().filter(is_told) {
            policies.0.extend(policies.policy(status));
        }
        policies
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Policy<'a>> {
        self.0.iter()
    }

    /// Those that can refuse. Clients hear of no other: what only counts in the shadow is not theirs
    /// to know.
    pub fn told(&self) -> impl Iterator<Item = &Policy<'a>> {
        self.iter()
            .filter(|policy| policy.status.mode() != Mode::Shadow)
    }

    /// The policy of a limit of the same verdict.
    pub fn find(&self, status: &LimitStatus<'_>) -> Option<&Policy<'a>> {
        self.iter().find(|policy| policy.status == *status)
    }

    fn policy(&self, status: LimitStatus<'a>) -> Option<Policy<'a>> {
        let quota = status.quota()?;
        let (name, naming) = match status.name() {
            Some(name) => (printable(name), Naming::Given),
            None => (name_of(quota.window()), Naming::Made),
        };
        Some(Policy {
            name: self.unique(name),
            naming,
            limit: quota.limit(),
            window: seconds::round_up(quota.window()),
            status,
        })
    }

    /// `name`, with a number if it is taken: one limit can apply to two descriptors.
    fn unique(&self, name: Cow<'a, str>) -> Cow<'a, str> {
        let is_taken = |name: &str| self.iter().any(|policy| policy.name == name);
        if !is_taken(&name) {
            return name;
        }
        let mut numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        // There are more numbers than policies.
        let free = numbered.find(|name| !is_taken(name));
        free.unwrap_or_default().into()
    }
}

// === impl SfString ===

impl fmt::Display for SfString<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(formatter, self.0)
    }
}

/// Writes printable ASCII in quotes, escaped as both structured fields and JSON have it.
pub(crate) fn write_quoted(to: &mut impl fmt::Write, text: &str) -> fmt::Result {
    to.write_str("\"")?;
    write_escaped(to, text)?;
    to.write_str("\"")
}

/// Writes printable ASCII as it stands between quotes.
pub(crate) fn write_escaped(to: &mut impl fmt::Write, text: &str) -> fmt::Result {
    // Names are short: a search by vectors would take longer to set up than to look at each byte.
    let next = |text: &str| text.bytes().position(|byte| matches!(byte, b'"' | b'\\'));
    let mut rest = text;
    while let Some(index) = next(rest) {
        to.write_str(&rest[..index])?;
        to.write_str("\\")?;
        to.write_str(&rest[index..=index])?;
        rest = &rest[index + 1..];
    }
    to.write_str(rest)
}

fn is_told(status: &LimitStatus<'_>) -> bool {
    matches!(status.ruling(), Ruling::Decided(_) | Ruling::Undecided(_)) && !status.is_hidden()
}

/// A name for a limit that has none. Not the rule's path: that can hold the values of other callers.
fn name_of(window: Duration) -> Cow<'static, str> {
    let word = WORDS
        .iter()
        .find(|(seconds, _)| Duration::from_secs(*seconds) == window);
    match word {
        Some((_, word)) => Cow::Borrowed(word),
        // The debug form of a duration may have a Greek letter.
        None => printable(&format!("per-{window:?}")).into_owned().into(),
    }
}

/// The beginning of `name`, with an underscore for each character that structured fields cannot carry.
fn printable(name: &str) -> Cow<'_, str> {
    let is_printable = |byte: u8| matches!(byte, b' '..=b'~');
    if name.len() <= MAX_NAME && name.bytes().all(is_printable) {
        return name.into();
    }
    let replaced = |character: char| match character {
        ' '..='~' => character,
        _ => '_',
    };
    name.chars().take(MAX_NAME).map(replaced).collect()
}
