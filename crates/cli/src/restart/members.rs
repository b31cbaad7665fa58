//! The number of members in a file: the largest count received in the last hour.
//!
//! Not the last count: a fleet that is stopped node by node counts itself down to 1. Nodes on one machine
//! share the file, so each writes what all of them have received.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_store::MAX_MEMBERS;
use tidegate_store_redis::book::Digest;

use crate::state::StateFile;

/// The time for which a count is kept after it was last received. It runs only while counts are received: in an outage
/// nothing expires.
const KEPT: Duration = Duration::from_hours(1);

/// The age of the times in the file at which it is written again.
const REFRESHED: Duration = Duration::from_mins(1);

/// The start of the file. The digest of the rest follows it.
const MAGIC: &str = "tidegate-members-1 ";

/// The most bytes of a file: a line for each possible count, twice.
const MAX_BYTES: u64 = 32 << 10;

/// The file.
#[derive(Clone, Debug)]
pub(super) struct MembersFile(pub(super) PathBuf);

/// Counts of members, each with the Unix time at which it was last received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<u32, Duration>);

/// The counts of the two ways in which nodes find each other. They differ where there are several regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberCounts {
    /// By heartbeats.
    pub(super) heartbeat: Counts,
    /// By exchanges of totals.
    pub(super) eventual: Counts,
}

// === impl MembersFile ===

impl MembersFile {
    /// Returns the counts in the file; none if there is no file.
    pub(super) fn read(&self) -> io::Result<MemberCounts> {
        let mut text = String::new();
        match File::open(&self.0) {
            Ok(file) => file.take(MAX_BYTES).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(MemberCounts::default());
            }
            Err(error) => return Err(error),
        };
        MemberCounts::parse(&text).ok_or_else(|| io::Error::other("the file is damaged"))
    }

    /// Adds `counts` to those in the file, and writes it if that changes what a node would start with, or if
    /// its times are old. A damaged file is replaced.
    pub(super) fn merge(&self, counts: &MemberCounts) -> io::Result<()> {
        let before = self.read().unwrap_or_default();
        let mut after = before.clone();
        after.heartbeat.merge(&counts.heartbeat);
        after.eventual.merge(&counts.eventual);
        let is_fresh = |before: &Counts, after: &Counts| {
            before.largest() == after.largest()
                && after.latest().saturating_sub(before.latest()) < REFRESHED
        };
        if is_fresh(&before.heartbeat, &after.heartbeat)
            && is_fresh(&before.eventual, &after.eventual)
        {
            return Ok(());
        }
        let text = after.text();
        StateFile::shared(self.0.clone()).replace(|file| file.write_all(text.as_bytes()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

// === impl Counts ===

impl Counts {
    /// Adds a count received at `now`.
    pub(super) fn receive(&mut self, count: u32, now: Duration) {
        self.0.insert(count.clamp(1, MAX_MEMBERS), now);
        // The clock may have been set back since the others were received.
        for received in self.0.values_mut() {
            *received = now.min(*received);
        }
        self.expire();
    }

    /// The largest count, if there is any.
    pub(super) fn largest(&self) -> Option<u32> {
        self.0.last_key_value().map(|(count, _)| *count)
    }

    /// The time at which the last count was received.
    pub(super) fn latest(&self) -> Duration {
        self.0.values().max().copied().unwrap_or_default()
    }

    fn merge(&mut self, other: &Self) {
        for (count, received) in &other.0 {
            let known = self.0.entry(*count).or_default();
            *known = (*known).max(*received);
        }
        self.expire();
    }

    fn expire(&mut self) {
        let latest = self.latest();
        self.0
            .retain(|_, received| latest.saturating_sub(*received) < KEPT);
    }
}

// === impl MemberCounts ===

impl MemberCounts {
    fn text(&self) -> String {
        let mut body = String::new();
        for (name, counts) in [("heartbeat", &self.heartbeat), ("eventual", &self.eventual)] {
            for (count, received) in &counts.0 {
                // Writing to a string does not fail.
                let _ = writeln!(body, "{name} {count} {}", received.as_secs());
            }
        }
        let digest = Digest::of(body.as_bytes());
        format!("{MAGIC}{digest}\n{body}")
    }

    fn parse(text: &str) -> Option<Self> {
        let (digest, body) = text.strip_prefix(MAGIC)?.split_once('\n')?;
        if digest.parse() != Ok(Digest::of(body.as_bytes())) {
            return None;
        }
        let mut counts = Self::default();
        for line in body.lines() {
            let mut words = line.split(' ');
            let counts = match words.next()? {
                "heartbeat" => &mut counts.heartbeat,
                "eventual" => &mut counts.eventual,
                _ => return None,
            };
            let count: u32 = words.next()?.parse().ok()?;
            let received = Duration::from_secs(words.next()?.parse().ok()?);
            counts.0.insert(count.clamp(1, MAX_MEMBERS), received);
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tidegate_store_redis::test_util::Folder;

    use super::*;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_mins(minutes)
    }

    fn received(counts: &[(u32, u64)]) -> MemberCounts {
        let mut heartbeat = Counts::default();
        for (count, minute) in counts {
            heartbeat.receive(*count, minutes(*minute));
        }
        MemberCounts {
            heartbeat,
            ..MemberCounts::default()
        }
    }

    fn largest(file: &MembersFile) -> Option<u32> {
        file.read().unwrap().heartbeat.largest()
    }

    /// A fleet that is stopped counts itself down.
    #[test]
    fn the_largest_count_of_the_last_hour_is_kept() {
        let largest = |counts: &[(u32, u64)]| received(counts).heartbeat.largest();
        assert_eq!(largest(&[]), None);
        assert_eq!(largest(&[(4, 100), (3, 101), (2, 102), (1, 103)]), Some(4));
        assert_eq!(largest(&[(4, 100), (3, 159), (1, 160)]), Some(3));
        assert_eq!(largest(&[(1_000_000, 1)]), Some(MAX_MEMBERS));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_count_last() {
        let counts = received(&[(4, 10_000), (2, 100), (2, 161)]);
        assert_eq!(counts.heartbeat.largest(), Some(2));
    }

    #[test]
    fn nodes_on_one_machine_share_a_file() {
        let folder = Folder::new();
        let file = MembersFile(folder.path().join("members"));
        assert_eq!(largest(&file), None);
        file.merge(&received(&[(4, 100)])).unwrap();
        // Another node has received less, later.
        file.merge(&received(&[(1, 102)])).unwrap();
        assert_eq!(largest(&file), Some(4));
        assert_eq!(file.read().unwrap().heartbeat.latest(), minutes(102));
        let modified = || fs::metadata(file.path()).unwrap().modified().unwrap();
        let before = modified();
        file.merge(&received(&[(3, 102)])).unwrap();
        assert_eq!(modified(), before, "nothing new");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_is_replaced() {
        let folder = Folder::new();
        let file = MembersFile(folder.path().join("members"));
        file.merge(&received(&[(4, 100)])).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        fs::write(file.path(), text.replace("heartbeat 4", "heartbeat 1")).unwrap();
        assert!(file.read().is_err());
        file.merge(&received(&[(2, 100)])).unwrap();
        assert_eq!(largest(&file), Some(2));
    }
}
