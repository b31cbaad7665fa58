//! Who is measured.

mod governor;
mod limitador;
mod limiter;
mod maps;
mod tidegate;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::key::Key;

pub use tidegate::Store;

/// Whoever decides on requests.
pub trait Subject: Send + Sync {
    /// Decides on one request of cost 1. Its own clock and all that it needs to build are included.
    fn check(&self, key: &Key) -> Answer;

    /// Decides on one request each, and counts those allowed. Here, so that the loop is compiled
    /// for each subject and one dynamic call is shared by many decisions.
    fn check_each(&self, keys: &[Key]) -> usize {
        keys.iter()
            .filter(|key| self.check(key) == Answer::Allowed)
            .count()
    }

    /// How many callers it has forgotten or never counted for want of memory.
    fn forgotten(&self) -> u64 {
        0
    }

    /// How many bytes it says it took, if it knows better than the allocator.
    fn bytes_taken(&self) -> Option<u64> {
        None
    }
}

/// What a subject says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request may pass.
    Allowed,
    /// It may not.
    Refused,
}

/// The limit that all subjects keep.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Requests per window; also the burst.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// How it counts.
    pub counting: Counting,
    /// For how many callers at once, where that must be known beforehand.
    pub keys: u64,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// A token bucket.
    Bucket,
    /// A fixed window.
    Window,
}

/// Those who are measured, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Our embedded store, by its contract.
    Store,
    /// Our limiter upon it: rules are matched as well.
    Limiter,
    /// The governor crate, keyed.
    Governor,
    /// The limitador crate, in memory.
    Limitador,
    /// What one writes oneself for many threads.
    DashMap,
    /// What one writes oneself first.
    Mutex,
}

// === impl Contender ===

impl Contender {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Store,
        Self::Limiter,
        Self::Governor,
        Self::Limitador,
        Self::DashMap,
        Self::Mutex,
    ];

    /// How it is called in the table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Store => "tidegate store",
            Self::Limiter => "tidegate limiter",
            Self::Governor => "governor 0.10.4",
            Self::Limitador => "limitador 0.14.0",
            Self::DashMap => "DashMap of buckets",
            Self::Mutex => "Mutex of HashMap",
        }
    }

    /// Whether it can count like that.
    pub const fn counts_by(self, counting: Counting) -> bool {
        match self {
            Self::Store | Self::Limiter => true,
            Self::Governor | Self::DashMap | Self::Mutex => matches!(counting, Counting::Bucket),
            Self::Limitador => matches!(counting, Counting::Window),
        }
    }

    /// How it counts when time is measured: by bucket if it can.
    pub const fn favourite(self) -> Counting {
        if self.counts_by(Counting::Bucket) {
            Counting::Bucket
        } else {
            Counting::Window
        }
    }

    /// A new one that has seen nobody yet.
    pub fn build(self, terms: &Terms) -> Box<dyn Subject> {
        match self {
            Self::Store => Box::new(tidegate::Store::new(terms)),
            Self::Limiter => Box::new(limiter::Limiter::new(terms)),
            Self::Governor => Box::new(governor::Governor::new(terms)),
            Self::Limitador => Box::new(limitador::Limitador::new(terms)),
            Self::DashMap => Box::new(maps::DashMapOfBuckets::new(terms)),
            Self::Mutex => Box::new(maps::MutexOfBuckets::new(terms)),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|contender| contender.to_string() == name);
        found.ok_or_else(|| format!("no contender {name}"))
    }
}

// === impl Counting ===

impl FromStr for Counting {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "Bucket" => Ok(Self::Bucket),
            "Window" => Ok(Self::Window),
            _ => Err(format!("no way of counting {name}")),
        }
    }
}
