//! Reading a snapshot into a new store.
//!
//! The checksums say that nothing changed since it was written; that the writer was this program is
//! for nobody to say, so every number is checked before it is used, too.

use std::io::Read;

use tidegate_algorithms::Time;

use super::super::core::Core;
use super::super::fingerprint::Fingerprinter;
use super::super::layout::{LAYOUTS, Layout, LayoutId};
use super::super::shared::{FEWEST_COUNTERS, whole_shared_hash};
use super::super::table::MOST_SHARD_BITS;
use super::super::tag::{FINGERPRINT_BITS, Form, Pass, Tag};
use super::super::try_core;
use super::frame::{Fields, FrameReader};
use super::place::{Entry, Fate, Unsound};
use super::{END, MARKS, ORIGIN, Restored, SHARD, SHARED, SnapshotError};
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
    /// The shared counters, until they are read. So long, counters that make way leave nothing there.
    shared: Option<Box<Core>>,
    origin: Origin,
    now: Time,
    restored: Restored,
    /// The layouts of the shard being read, by the number they have in the snapshot; those without a number here found
    /// none left.
    layouts: Vec<Option<(Option<LayoutId>, Layout)>>,
    /// Whose shards are being read.
    owner: Owner,
}

/// Whose counters a shard has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Callers,
    Shared {
        /// How many of them each layout has.
        number: u64,
    },
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
        let mut core = try_core(config)?;
        origin.prepare_for(core.table.shard_bits());
        Ok(Self {
            shared: core.shared.take(),
            core,
            origin,
            now,
            restored: Restored {
                written_at: origin.written_at,
                counters: 0,
                shared: 0,
                expired: 0,
                dropped: 0,
            },
            layouts: vec![None; LAYOUTS],
            owner: Owner::Callers,
        })
    }

    fn read(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        match fields.u8()? {
            SHARD => self.read_shard(fields),
            SHARED => self.begin_shared(fields),
            END => self.read_end(fields),
            _ => Err(fields.damaged("an unknown part")),
        }
    }

    /// Begins with the shared counters.
    fn begin_shared(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        let number = fields.u64()?;
        fields.finish()?;
        let known = FEWEST_COUNTERS..=1 << FINGERPRINT_BITS;
        match self.shared.take() {
            Some(shared) if known.contains(&number) => {
                self.core.shared = Some(shared);
                self.owner = Owner::Shared { number };
                Ok(Progress::More)
            }
            _ => Err(fields.damaged("shared counters that cannot be")),
        }
    }

    /// The core that the shards being read belong to.
    fn core(&self) -> &Core {
        match (self.owner, &self.core.shared) {
            (Owner::Shared { .. }, Some(shared)) => shared,
            _ => &self.core,
        }
    }

    fn read_shard(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        let shard = fields.u32()?;
        let bits = match self.owner {
            Owner::Callers => self.origin.shard_bits,
            Owner::Shared { .. } => MOST_SHARD_BITS,
        };
        if shard >= 1 << bits {
            return Err(fields.damaged("a shard that is not there"));
        }
        if let (Owner::Shared { number }, Some(shared)) = (self.owner, &mut self.core.shared) {
            // It chooses the counter of a caller. Where none is live, their number follows from memory.
            shared.shared_counters = number;
            self.core.has_restored_shared = true;
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
            let own = self.core().layouts.try_number(layout);
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
        let words = match written.form() {
            Form::Narrow => fields.words(1)?,
            Form::Boxed => {
                let count = usize::try_from(fields.u64()?).unwrap_or(usize::MAX);
                fields.words(count)?
            }
        };
        let Some(number) = number else {
            self.note(Fate::Dropped);
            return Ok(());
        };
        let hash = match self.owner {
            Owner::Callers => self.origin.hash(shard, written),
            Owner::Shared { .. } => whole_shared_hash(written.fingerprint()),
        };
        let mut tag = Tag::new(hash, number).with_form(written.form());
        // Version 2 had a flag among the bits of the mark.
        if self.origin.version >= MARKS {
            tag = tag.restored_as(written, Pass::at(self.now));
        }
        let entry = Entry {
            hash,
            tag,
            now: self.now,
            most_sets: self.most_sets(written.form()),
        };
        let fate = match written.form() {
            Form::Narrow => entry.put_narrow(self.core(), u64::from_le_bytes(words[0]), layout),
            Form::Boxed => entry
                .put_boxed(self.core(), words, layout.shape)
                .map_err(|Unsound| fields.damaged("a block that makes no sense"))?,
        };
        self.note(fate);
        Ok(())
    }

    /// The most sets of a shard for counters of that form. Shards are read one after the other, so where there is less
    /// memory than there was, the first one would take the layers that the blocks of all others need.
    fn most_sets(&self, form: Form) -> u32 {
        let table = &self.core().table;
        let is_smaller = table.shard_bits() < self.origin.shard_bits;
        match form {
            Form::Boxed if is_smaller => table.max_sets() / 2,
            _ => table.max_sets(),
        }
    }

    fn note(&mut self, fate: Fate) {
        let restored = &mut self.restored;
        match fate {
            Fate::Placed if self.owner == Owner::Callers => restored.counters += 1,
            Fate::Placed => restored.shared += 1,
            Fate::Expired => restored.expired += 1,
            // One more is there, another one is not.
            Fate::Displaced | Fate::Dropped => restored.dropped += 1,
        }
    }

    fn read_end(&mut self, mut fields: Fields<'_>) -> Result<Progress, SnapshotError> {
        let Restored {
            counters,
            shared,
            expired,
            dropped,
            ..
        } = self.restored;
        if fields.u64()? != counters + shared + expired + dropped {
            return Err(fields.damaged("another number of counters than was written"));
        }
        fields.finish()?;
        if let Some(shared) = self.shared.take() {
            self.core.shared = Some(shared);
        }
        // Those that made way for another one or for its block.
        let evicted = self.core.evicted.get();
        self.restored.counters = counters.saturating_sub(evicted);
        self.restored.dropped = dropped + evicted;
        Ok(Progress::Done)
    }
}
