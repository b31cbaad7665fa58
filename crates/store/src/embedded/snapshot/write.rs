//! Writing a snapshot, a shard at a time.

use std::io::{self, Write};

use tidegate_algorithms::Time;

use super::super::core::Core;
use super::super::fingerprint::Fingerprinter;
use super::super::layout::{LAYOUTS, Layout};
use super::super::table::{LockedSet, SET_BYTES, WAYS};
use super::super::tag::{Form, Pass};
use super::frame::FrameWriter;
use super::{END, ORIGIN, SHARD, SHARED, Written};
use crate::Clock;

/// The live counters of one shard, ready to be written. Used again for each shard, so that no memory
/// is asked for while one stands still.
struct Part {
    counters: u64,
    /// The counters, one after the other.
    bytes: Vec<u8>,
    /// The layouts that the counters have, by number.
    layouts: Vec<Option<Layout>>,
}

// === impl Core ===

impl Core {
    pub(super) fn write_snapshot(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        out: impl Write,
    ) -> io::Result<Written> {
        let mut frames = FrameWriter::begin(out)?;
        let at = clock.now();
        frames.write(&self.origin(fingerprinter, at))?;
        let counters = self.write_shards(clock, &mut frames)?;
        let mut shared_counters = 0;
        if let Some(shared) = &self.shared {
            frames.write(&numbered(SHARED, shared.shared_counters))?;
            shared_counters = shared.write_shards(clock, &mut frames)?;
        }
        frames.write(&numbered(END, counters + shared_counters))?;
        let bytes = frames.finish()?;
        Ok(Written {
            at,
            counters,
            bytes,
        })
    }

    /// Writes the shards that have live counters, and gives the number of those.
    fn write_shards(
        &self,
        clock: &impl Clock,
        frames: &mut FrameWriter<impl Write>,
    ) -> io::Result<u64> {
        let mut part = Part::new(self.table.max_sets() as usize * SET_BYTES);
        let mut counters = 0;
        for shard in 0..self.table.shards() {
            part.collect(self, shard, clock.now());
            counters += part.counters;
            if part.counters > 0 {
                frames.write(&part.body(shard))?;
            }
        }
        Ok(counters)
    }

    fn origin(&self, fingerprinter: &Fingerprinter, now: Time) -> Vec<u8> {
        let mut body = vec![ORIGIN];
        let [first, second] = fingerprinter.secret;
        for word in [first, second, fingerprinter.lost] {
            put(&mut body, word);
        }
        body.extend_from_slice(&self.table.shard_bits().to_le_bytes());
        put(&mut body, now.nanos());
        body
    }
}

// === impl Part ===

impl Part {
    fn new(capacity: usize) -> Self {
        Self {
            counters: 0,
            bytes: Vec::with_capacity(capacity),
            layouts: vec![None; LAYOUTS],
        }
    }

    /// Takes in the counters of a shard that are live at `now`, all as of one instant.
    fn collect(&mut self, core: &Core, shard: u32, now: Time) {
        self.counters = 0;
        self.bytes.clear();
        self.layouts.fill(None);
        let sets = core.lock_shard(shard);
        for set in &sets {
            for slot in (0..WAYS).filter(|&slot| !core.is_free(set, slot, now)) {
                self.add(core, set, slot, Pass::at(now));
            }
        }
    }

    fn add(&mut self, core: &Core, set: &LockedSet<'_>, slot: usize, pass: Pass) {
        let (tag, state) = (set.tag(slot), set.state(slot));
        self.counters += 1;
        // Now, because a number may mean another layout when no slot names it any more.
        self.layouts[usize::from(tag.layout().get())] = core.layouts.get(tag.layout());
        put(&mut self.bytes, tag.to_saved(pass).word());
        match tag.form() {
            Form::Narrow => put(&mut self.bytes, state),
            Form::Boxed => {
                let block = core.block(state);
                put(&mut self.bytes, block.len() as u64);
                for index in 0..block.len() {
                    put(&mut self.bytes, block.get(index));
                }
            }
        }
    }

    /// The body of the shard's frame.
    fn body(&self, shard: u32) -> Vec<u8> {
        let layouts: Vec<_> = (0_u16..)
            .zip(&self.layouts)
            .filter_map(|(number, layout)| Some((number, (*layout)?)))
            .collect();
        let mut body = Vec::with_capacity(self.bytes.len() + layouts.len() * 10 + 16);
        body.push(SHARD);
        body.extend_from_slice(&shard.to_le_bytes());
        // Below 1,024.
        let count = u16::try_from(layouts.len()).unwrap_or(u16::MAX);
        body.extend_from_slice(&count.to_le_bytes());
        for (number, layout) in layouts {
            body.extend_from_slice(&number.to_le_bytes());
            put(&mut body, layout.to_word());
        }
        body.extend_from_slice(&self.bytes);
        body
    }
}

/// The body of a frame that holds a number.
fn numbered(kind: u8, number: u64) -> Vec<u8> {
    let mut body = vec![kind];
    put(&mut body, number);
    body
}

fn put(bytes: &mut Vec<u8>, word: u64) {
    bytes.extend_from_slice(&word.to_le_bytes());
}
