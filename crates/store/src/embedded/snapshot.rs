//! The store as a stream of bytes: written while requests go on, read into a store that starts.
//!
//! ```text
//! snapshot = magic version origin shard* (shared shard*)? end
//! each of the last four is a frame: length, body, checksum
//!
//! origin   = 1, secret, lost bits, bits of a shard's number, the time of writing
//! shard    = 2, its number, layouts in use, counters
//! end      = 3, how many counters there were, the shared ones included
//! shared   = 4, how many shared counters each layout has; the shards that follow are theirs
//!
//! counter  = tag, state                     a narrow slot as it lies in memory
//!          | tag, number of words, words    a boxed one, with its block
//! ```
//!
//! All numbers are little endian. The checksum of a frame covers its body, its length and the
//! checksum of the frame before it, so the last one vouches for the whole, and no frame can be
//! missing, doubled or in another's place. States are written as they lie in memory: whoever
//! changes how they lie there changes [`VERSION`]. Of the mark of a tag only one bit is written: whether the counter
//! was in use.
//!
//! A snapshot holds the secret of the fingerprints: who reads it can make keys that collide.

mod frame;
mod place;
mod read;
mod write;

use std::io::{self, Read, Write};

use tidegate_algorithms::Time;

use crate::{Clock, EmbeddedStore, MemoryRefused, StoreConfig};

/// How a snapshot begins.
const MAGIC: [u8; 8] = *b"TIDEGATE";

/// The format this program writes. It reads those before it, too: version 3 had no marks and no shared counters,
/// version 2 had a flag for denied counters in its tags, version 1 had the layout elsewhere.
const VERSION: u32 = 4;

/// The first version with marks and shared counters.
const MARKS: u32 = 4;

/// The first byte of each kind of frame.
const ORIGIN: u8 = 1;
const SHARD: u8 = 2;
const END: u8 = 3;
const SHARED: u8 = 4;

/// What a snapshot came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// When it was begun, by the clock of the store.
    pub at: Time,
    /// Live counters in it, without the shared ones.
    pub counters: u64,
    /// Its size.
    pub bytes: u64,
}

/// What became of the counters of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// When the snapshot was begun, by the clock of the store that wrote it.
    pub written_at: Time,
    /// Those that go on, without the shared ones.
    pub counters: u64,
    /// Shared counters that go on.
    pub shared: u64,
    /// Those that have expired since.
    pub expired: u64,
    /// Those for which there was no room, or that made way for others.
    pub dropped: u64,
}

/// Why a snapshot was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Its source failed.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// It does not begin as snapshots do.
    #[error("it is no snapshot of counters")]
    NotASnapshot,
    /// Another version of this program wrote it.
    #[error(
        "it is written in format {found}, this version of tidegate reads formats 1 to {VERSION}"
    )]
    UnknownVersion {
        /// The version it has.
        found: u32,
    },
    /// It ends too soon.
    #[error("it is cut short")]
    CutShort,
    /// What it says is not what was written.
    #[error("it is damaged: {what}, in the {frame}. part")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// In which of its frames, counted from 1.
        frame: u64,
    },
    /// There is no memory for a store.
    #[error(transparent)]
    NoMemory(#[from] MemoryRefused),
}

// === impl EmbeddedStore ===

impl<C: Clock> EmbeddedStore<C> {
    /// Writes all live counters to `out`, in many small pieces and a flush.
    ///
    /// Requests go on meanwhile: one shard stands still at a time, 64 KiB of counters and their blocks,
    /// while it is copied. Each shard is written as it was at one instant, but not all at the same one,
    /// so a request that charges two counters during the writing may be seen in one of them only.
    pub fn write_snapshot(&self, out: impl Write) -> io::Result<Written> {
        self.core
            .write_snapshot(&self.fingerprinter, &self.clock, out)
    }

    /// A store that goes on where the one that wrote a snapshot was, and what became of its counters.
    ///
    /// It decides as that store would; the time since counts as time. Counters that have expired at
    /// `clock`'s now are left out. If `config` has less memory than there was, counters make way as
    /// they do at the cap: those that expire first.
    ///
    /// Every byte is checked: a snapshot that is not as it was written yields an error, never
    /// another count.
    pub fn restore(
        config: StoreConfig,
        clock: C,
        input: impl Read,
    ) -> Result<(Self, Restored), SnapshotError> {
        read::restore(config, clock, input)
    }
}
