//! Callers who are refused for a time, whatever their counters say.

mod table;

use std::cmp;
use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Retry, Time};
use tidegate_rules::{Entry, Rule};

use crate::KeyError;

pub(crate) use table::Bans;

/// The most bans at once.
pub const MAX_BANS: usize = 10_000;

/// The most bytes of the texts of one ban, so that all of them take no more than about 20 MiB.
pub const MAX_BAN_BYTES: usize = 1_024;

/// One ban: who, why, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    domain: Box<str>,
    rule: Box<str>,
    entries: Box<[(Box<str>, Box<str>)]>,
    reason: Option<Box<str>>,
    /// When it ends, and how long it was to last; `None` for one that is only lifted.
    end: Option<(Time, Duration)>,
}

/// How long a ban lasts, or has still to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanTerm {
    /// So long.
    For(Duration),
    /// Until somebody lifts it.
    UntilLifted,
}

/// A ban in force.
#[derive(Clone, Debug)]
pub struct ActiveBan {
    /// The ban.
    pub ban: Arc<Ban>,
    /// How long it has still to last.
    pub left: BanTerm,
}

/// A ban to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewBan<'a> {
    /// How long it lasts.
    pub term: BanTerm,
    /// Why, for whoever lists the bans.
    pub reason: Option<&'a str>,
}

// === impl Ban ===

impl Ban {
    /// A ban from `now` on.
    pub(crate) fn new(
        domain: &str,
        rule: &Rule,
        entries: &[Entry<'_>],
        new: NewBan<'_>,
        now: Time,
    ) -> Result<Self, KeyError> {
        let reason = new.reason.unwrap_or_default();
        let of_entries = entries.iter().map(|it| it.key.len() + it.value.len());
        if of_entries.sum::<usize>() + reason.len() > MAX_BAN_BYTES {
            return Err(KeyError::BanTooLong {
                most: MAX_BAN_BYTES,
            });
        }
        let pair = |entry: &Entry<'_>| (entry.key.into(), entry.value.into());
        Ok(Self {
            domain: domain.into(),
            rule: rule.path().into(),
            entries: entries.iter().map(pair).collect(),
            reason: new.reason.map(Into::into),
            end: match new.term {
                BanTerm::For(length) => Some((now.plus(length), length)),
                BanTerm::UntilLifted => None,
            },
        })
    }

    /// The domain.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The path of the rule when the ban was made.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The entries that the ban was made by.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        self.entries.iter().map(|(key, value)| Entry { key, value })
    }

    /// Why it was made, if that was said.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The order of a list.
    fn cmp_place(&self, other: &Self) -> cmp::Ordering {
        let place = (&self.domain, &self.rule, &self.entries);
        place.cmp(&(&other.domain, &other.rule, &other.entries))
    }

    /// What is left of it at `now`; `None` if it is over.
    pub(crate) fn left(&self, now: Time) -> Option<BanTerm> {
        match self.end {
            None => Some(BanTerm::UntilLifted),
            Some((end, _)) => (now < end).then(|| BanTerm::For(end.since(now))),
        }
    }

    /// All of it, for want of a clock.
    pub(crate) fn whole(&self) -> BanTerm {
        self.end
            .map_or(BanTerm::UntilLifted, |(_, length)| BanTerm::For(length))
    }
}

// === impl BanTerm ===

impl BanTerm {
    /// When who is banned may come again.
    pub const fn retry(self) -> Retry {
        match self {
            Self::For(left) => Retry::After(left),
            Self::UntilLifted => Retry::Never,
        }
    }
}

// === impl ActiveBan ===

impl ActiveBan {
    /// The ban, if it is not over.
    pub(crate) fn at(ban: Arc<Ban>, now: Time) -> Option<Self> {
        let left = ban.left(now)?;
        Some(Self { ban, left })
    }
}
