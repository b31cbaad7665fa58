//! Keys of counters in Redis.
//!
//! `tg1{tag}` and the limit, its algorithm and its window, a colon, and the values that tell callers apart,
//! each after its length: `tg1{Zk3a}AAAAAAAAAAAAAAAAAAAAAQt60s:2:42`. The tag is four characters made of the
//! values, so that all limits of one caller lie in one slot of a Cluster and callers spread; a limit without
//! values is tagged by itself. It is the first brace of the key and has none inside, whatever a client says.
//!
//! `1` is the version of what is stored. Another version has another prefix, and neither sees the other.
//!
//! The note of what was given back to a bucket lies in the same slot under the same name, but for its prefix:
//! `tg1:b{Zk3a}…`. It is no counter, and is not listed as one.

use std::fmt;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use smallvec::SmallVec;
use tidegate_algorithms::{Meter, Quota};
use tidegate_store::{CounterKey, LimitId};

/// The key of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(SmallVec<[u8; 112]>);

/// Among installations that share a Redis, the one that counters are of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Installation(Option<u128>);

/// What begins the key of every counter.
const PREFIX: &[u8] = b"tg1{";

/// What begins the key of every note.
const NOTE_PREFIX: &[u8] = b"tg1:b{";

/// Digits of a limit's identity that say of which installation it is, and the bits that they hold: the first
/// digit has two. The bits below tell limits apart.
const MARK_DIGITS: usize = 5;
const MARK_BITS: u32 = 26;

/// Longer values than this, with their lengths, are replaced by a digest.
const LONGEST_VALUES: usize = 64;

/// Where the letter of the algorithm stands, after prefix, tag and limit.
const LETTER_AT: usize = 31;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// === impl Key ===

impl Key {
    pub(crate) fn new(key: CounterKey<'_>, quota: &Quota) -> Self {
        let values = values(key.values);
        let tag = match key.values {
            [] => tag(&key.limit.0.to_be_bytes()),
            _ => tag(&values),
        };
        let mut bytes = SmallVec::from_slice(PREFIX);
        digits(&mut bytes, u128::from(tag), 4);
        bytes.push(b'}');
        let LimitId(limit) = key.limit;
        digits(&mut bytes, limit, 22);
        shape(&mut bytes, quota);
        bytes.push(b':');
        bytes.extend_from_slice(&values);
        Self(bytes)
    }

    /// Where the note of this counter lies.
    pub(crate) fn note(&self) -> Self {
        let mut bytes = SmallVec::from_slice(NOTE_PREFIX);
        bytes.extend_from_slice(&self.0[PREFIX.len()..]);
        Self(bytes)
    }

    /// The window that a key names; `None` if it is no key of ours.
    pub(crate) fn window_of(key: &[u8]) -> Option<Duration> {
        let shape = key.get(LETTER_AT + 1..)?;
        let shape = shape.split(|&byte| byte == b':').next()?;
        let shape = str::from_utf8(shape).ok()?;
        let window = shape.rsplit('/').next()?;
        let unit = window.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let nanos: u64 = match unit {
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        let count: u64 = window.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_nanos(count.checked_mul(nanos)?))
    }
}

// === impl Installation ===

impl Installation {
    /// The one that has this name.
    pub(crate) fn named(name: &str) -> Self {
        let hash = digest(&SHA256, name.as_bytes());
        let half = hash.as_ref().first_chunk().copied();
        Self(half.map(u128::from_be_bytes))
    }

    /// A limit's identity among those of all installations. It is no longer for that, and begins with the
    /// mark of this one.
    pub(crate) const fn own(self, LimitId(limit): LimitId) -> LimitId {
        let Self(Some(hash)) = self else {
            return LimitId(limit);
        };
        let marks = u128::MAX << (u128::BITS - MARK_BITS);
        LimitId((hash & marks) | ((limit ^ hash) & !marks))
    }

    /// What the keys of its counters look like, to Redis' `MATCH`; without a name, those of all.
    pub(crate) fn pattern(self) -> String {
        let mut mark = Vec::new();
        if let Self(Some(hash)) = self {
            digits(&mut mark, hash, 22);
            mark.truncate(MARK_DIGITS);
        }
        format!("tg1{{????}}{}*", String::from_utf8_lossy(&mark))
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// The values, each after its length, or a digest of that.
fn values(values: &[&str]) -> SmallVec<[u8; LONGEST_VALUES]> {
    let mut text = SmallVec::new();
    for value in values {
        text.extend_from_slice(itoa::Buffer::new().format(value.len()).as_bytes());
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
    }
    if text.len() <= LONGEST_VALUES {
        return text;
    }
    // 128 bits of a hash that nobody finds two inputs for. It begins as no length does.
    let hash = digest(&SHA256, &text);
    let half = hash.as_ref().first_chunk().copied().unwrap_or_default();
    let mut text = SmallVec::from_slice(b"#");
    digits(&mut text, u128::from_be_bytes(half), 22);
    text
}

/// The letter of the algorithm and the window, and before that into how many parts it is cut. Another window
/// is another counter: what is counted by one means nothing to another.
fn shape(bytes: &mut impl Extend<u8>, quota: &Quota) {
    let (letter, parts) = match quota.meter() {
        Meter::TokenBucket(_) => (b't', None),
        Meter::LeakyBucket(_) => (b'l', None),
        Meter::IntervalBucket(_) => (b'i', None),
        Meter::FixedWindow(_) => (b'f', None),
        Meter::SlidingLog(_) => (b'g', None),
        Meter::SlidingCounter(_) => (b'c', None),
        Meter::SubWindows(meter) => (b'w', Some(meter.parts())),
    };
    let nanos = quota.window().as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units
        .into_iter()
        .find(|(unit, _)| nanos.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ns"));
    let mut number = itoa::Buffer::new();
    bytes.extend([letter]);
    if let Some(parts) = parts {
        bytes.extend(number.format(parts).bytes().chain([b'/']));
    }
    bytes.extend(number.format(nanos / unit).bytes().chain(name.bytes()));
}

/// 24 bits of a hash (FNV-1a): enough to spread callers over slots. It protects nothing.
fn tag(bytes: &[u8]) -> u32 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = hash ^ (hash >> 24) ^ (hash >> 48);
    u32::try_from(folded & 0xff_ffff).unwrap_or_default()
}

/// Adds a number in base 64, in so many digits.
fn digits(bytes: &mut impl Extend<u8>, number: u128, count: u32) {
    for digit in (0..count).rev() {
        let value = usize::try_from((number >> (6 * digit)) & 63).unwrap_or_default();
        bytes.extend([DIGITS[value]]);
    }
}

#[cfg(test)]
mod tests;
