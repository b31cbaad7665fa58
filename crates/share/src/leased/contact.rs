//! The age of this node's view of a counter, and the age that it may have.

use std::time::Duration;

use tidegate_algorithms::Time;

use crate::reckoning::Heard;

/// The interval between two replies of the store is never shorter than this part of a loan's life.
const SHORTEST: u32 = 16;

/// The last contact with the store about one counter.
///
/// While others take much of the limit between two replies, the next one is due sooner: `remaining` stays close
/// to the truth, and loans are small when the limit goes fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    longest: Duration,
    interval: Duration,
    last: Option<LastContact>,
}

#[derive(Clone, Copy, Debug)]
struct LastContact {
    heard: Heard,
    /// Permits that the store then had left.
    left: u64,
    /// Whether that was little.
    is_scarce: bool,
}

// === impl Contact ===

impl Contact {
    pub(super) const fn new(life: Duration) -> Self {
        Self {
            longest: life,
            interval: life,
            last: None,
        }
    }

    /// Takes in a reply: `left` permits were there after this node took `taken`. The interval follows what others
    /// took since the reply before, which should be about `share`.
    pub(super) fn hear(&mut self, left: u64, taken: u64, share: u64, heard: Heard) {
        if let Some(last) = self.last {
            let before = left.saturating_add(taken);
            let change = before.abs_diff(last.left);
            if change > share {
                self.interval = (self.interval / 2).max(self.longest / SHORTEST);
            } else if change < share / 4 {
                self.interval = (self.interval * 2).min(self.longest);
            }
        }
        self.last = Some(LastContact {
            heard,
            left,
            is_scarce: left / 8 < share,
        });
    }

    /// Takes in a denial.
    pub(super) const fn exhausted(&mut self, left: u64, heard: Heard) {
        self.last = Some(LastContact {
            heard,
            left,
            is_scarce: true,
        });
    }

    /// The time between two replies.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Whether others take so much that the last reply is too old. (A loan's end brings the next one otherwise.)
    pub(super) fn is_old(&self, now: Time) -> bool {
        let last = self.last;
        self.interval < self.longest
            && last.is_some_and(|last| now.since(last.heard.answered) >= self.interval)
    }

    /// Whether little was left to others.
    pub(super) fn is_scarce(&self) -> bool {
        self.last.is_some_and(|last| last.is_scarce)
    }

    /// The store's time, or a little later.
    pub(super) fn store_now(&self, now: Time) -> Time {
        self.last.map_or(Time::ZERO, |last| {
            last.heard.now.plus(now.since(last.heard.asked))
        })
    }
}
