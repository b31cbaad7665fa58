//! Reading a snapshot into a new store.
//!
//! The checksums say that nothing changed since it was written; that the writer was this program is
//! for nobody to say, so every number is checked before it is used, too.

use std::io::Read;

use tidegate_algorithms::Time;

use super::super::core::Core;
use super::super::fingerprint::Fingerprinter;
use super::super::layout::{LAYOUTS, Layout, LayoutId};
use super::super::table::MOST_SHARD_BITS;
use super::super::tag::{Form, Tag};
use super::super::try_core;
use super::frame::{Fields, FrameReader};
use super::place::{Entry, Fate, Unsound};
use super::{END, ORIGIN, Restored, SHARD, SnapshotError};
use crate::{Clock, EmbeddedStore, StoreConfig};

/// Where the counters come from.
#[derive(Clone, Copy)]
struct Origin {
    version: u32,
    fingerprinter: Fingerprinter,
    shard_bits: u32,
    written_at: Time,
}

/// A store in the making.
struct Restoration {
    core: Core,
    origin: Origin,
    now: Time,
    restored: Restored,
    /// The layouts of the shard being read, by the number they have in the snapshot.
    layouts: Vec<Option<(LayoutId, Layout)>>,
}

/// Whether a snapshot goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    Done,
}

/// Reads a whole snapshot.
pub(super) fn restore<C: Clock>(
    config: StoreConfig,
    clock: C,
    input: impl Read,
) -> Result<(EmbeddedStore<C>, Restored), SnapshotError> {
    let mut frames = FrameReader::begin(input)?;
    let version = frames.version();
    let origin = Origin::read(frames.next()?, version)?;
    let mut restoration = Restoration::new(config, origin, clock.now())?;
    while restoration.read(frames.next()?)? == Progress::More {}
    frames.finish()?;
    let store = EmbeddedStore {
        core: restoration.core,
        fingerprinter: restoration.origin.fingerprinter,
        #[cfg(feature = "test-util")]
        notes: crate::embedded::lend::Notes::default(),
        clock,
    };
    Ok((store, restoration.restored))
}

// === impl Origin ===

impl Origin {
    fn read(mut fields: Fields<'_>, version: u32) -> Result<Self, SnapshotError> {
        if fields.u8()? != ORIGIN {
            return Err(fields.damaged("it does not begin with its origin"));
        }
        let secret = [fields.u64()?, fields.u64()?];
        let lost = fields.u64()?;
        let shard_bits = fields.u32()?;
        let written_at = Time::from_nanos(fields.u64()?);
        fields.finish()?;
        if shard_bits > MOST_SHARD_BITS || lost & !Fingerprinter::lost_among(0) != 0 {
            return Err(fields.damaged("more shards than there can be"));
        }
        Ok(Self {
            version,
            fingerprinter: Fingerprinter { secret, lost },
            shard_bits,
            written_at,
        })
    }

    /// Gives up the bits of hashes that are not known of these counters, as far as a store whose
    /// shards' numbers have so many bits would use them.
    fn prepare_for(&mut self, shard_bits: u32) {
        self.fingerprinter.lost |= Fingerprinter::lost_among(self.shard_bits);
        self.fingerprinter.lost &= !Fingerprinter::lost_among(shard_bits);
    }

    /// The hash of a counter by what a slot keeps of it; the bits that are lost are made up.
    fn hash(&self, shard: u32, tag: Tag) -> u64 {
        let shard = u64::from(shard).unbounded_shl(u64::BITS - self.shard_bits);
        self.fingerprinter.complete(shard | tag.fingerprint())
    }
}

// === impl Restoration ===

impl Restoration {
    fn new(config: StoreConfig, mut origin: Origin, now: Time) -> Result<Self, SnapshotError> {
        let core = try_core(config)?;
        origin.prepare_for(core.table.shard_bits());
        Ok(Self {
            core,
            origin,
            now,
            restored: Restored {
                written_at: origin.written_at,
                counters: 0,
                expired: 0,
                dropped: 0,
            },
            layouts: vec![None; LAYOUTS],
        })
    }

    fn read(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        match fields.u8()? {
            SHARD => self.read_shard(fields),
            END => self.read_end(fields),
            _ => Err(fields.damaged("an unknown part")),
        }
    }

    fn read_shard(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        let shard = fields.u32()?;
        if shard >= 1 << self.origin.shard_bits {
            return Err(fields.damaged("a shard that is not there"));
        }
        self.read_layouts(&mut fields)?;
        while !fields.is_empty() {
            self.read_counter(shard, &mut fields)?;
        }
        Ok(Progress::More)
    }

    fn read_layouts(&mut self, fields: &mut Fields<'_>) -> Result<(), SnapshotError> {
        self.layouts.fill(None);
        for _ in 0..fields.u16()? {
            let (number, word) = (fields.u16()?, fields.u64()?);
            let layout = Layout::from_foreign_word(word)
                .ok_or_else(|| fields.damaged("an unknown algorithm or window"))?;
            let own = self.core.layouts.assignment().number(layout);
            let own = own.ok_or_else(|| fields.damaged("too many windows"))?;
            *self
                .layouts
                .get_mut(usize::from(number))
                .ok_or_else(|| fields.damaged("too many windows"))? = Some((own, layout));
        }
        Ok(())
    }

    fn read_counter(&mut self, shard: u32, fields: &mut Fields<'_>) -> Result<(), SnapshotError> {
        let word = fields.u64()?;
        let written = if self.origin.version == 1 {
            Tag::from_version_1(word)
        } else {
            Tag::from_word(word)
        };
        let number = usize::from(written.layout().get());
        let (number, layout) = self.layouts[number]
            .ok_or_else(|| fields.damaged("a counter of no known algorithm and window"))?;
        let hash = self.origin.hash(shard, written);
        let entry = Entry {
            hash,
            // Without the mark, which tells nothing after a restart. Version 2 had a flag among its bits.
            tag: Tag::new(hash, number).with_form(written.form()),
            now: self.now,
            most_sets: self.most_sets(written.form()),
        };
        let fate = match written.form() {
            Form::Narrow => entry.put_narrow(&self.core, fields.u64()?, layout),
            Form::Boxed => {
                let count = usize::try_from(fields.u64()?).unwrap_or(usize::MAX);
                let words = fields.words(count)?;
                entry
                    .put_boxed(&self.core, words, layout.shape)
                    .map_err(|Unsound| fields.damaged("a block that makes no sense"))?
            }
        };
        self.note(fate);
        Ok(())
    }

    /// The most sets of a shard for counters of that form. Shards are read one after the other, so where there is less
    /// memory than there was, the first one would take the layers that the blocks of all others need.
    fn most_sets(&self, form: Form) -> u32 {
        let table = &self.core.table;
        let is_smaller = table.shard_bits() < self.origin.shard_bits;
        match form {
            Form::Boxed if is_smaller => table.max_sets() / 2,
            _ => table.max_sets(),
        }
    }

    fn note(&mut self, fate: Fate) {
        let restored = &mut self.restored;
        match fate {
            Fate::Placed => restored.counters += 1,
            Fate::Expired => restored.expired += 1,
            // One more is there, another one is not.
            Fate::Displaced | Fate::Dropped => restored.dropped += 1,
        }
    }

    fn read_end(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        let Restored {
            counters,
            expired,
            dropped,
            ..
        } = self.restored;
        if fields.u64()? != counters + expired + dropped {
            return Err(fields.damaged("another number of counters than was written"));
        }
        fields.finish()?;
        // Those that had to make way for the block of another one.
        let evicted = self.core.evicted.get();
        self.restored.counters = counters.saturating_sub(evicted);
        self.restored.dropped = dropped + evicted;
        Ok(Progress::Done)
    }
}
