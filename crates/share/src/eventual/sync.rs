//! Telling the others, and hearing from them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_algorithms::Time;
use tidegate_store::{Clock, Exchanged, StoreError, Tally, Telling, Totals};
use tokio::time::{MissedTickBehavior, interval};

use super::entry::{Key, Said, Values};
use super::hear::{News, edge, epoch_length};
use super::{Eventual, EventualConfig};

/// The region whose store a node also hears from.
const HOME: usize = 0;

/// The counters that wait to be told to one region. What was not told when it is dropped waits again.
struct Round<'a, C: Clock> {
    eventual: &'a Eventual<C>,
    region: usize,
    waiting: Vec<u128>,
}

/// One counter to tell of.
struct Draft {
    digest: u128,
    key: Arc<Key>,
    said: Said,
    /// But for the key.
    telling: Telling<'static>,
}

// === impl Eventual ===

impl<C: Clock> Eventual<C> {
    /// Tells and hears for as long as it is polled; needs a tokio runtime with timers. `home` is the
    /// store of this node's region, `others` are those of the other regions, as many as were announced.
    pub async fn run<T: Totals>(&self, home: &T, others: &[T]) -> Infallible {
        let rest = Box::pin(self.keep_telling(HOME + 1, others));
        tokio::join!(self.keep_syncing(HOME, home), rest).0
    }

    async fn keep_telling<T: Totals>(&self, region: usize, others: &[T]) {
        if let [next, rest @ ..] = others {
            let rest = Box::pin(self.keep_telling(region + 1, rest));
            tokio::join!(self.keep_syncing(region, next), rest);
        }
    }

    async fn keep_syncing<T: Totals>(&self, region: usize, store: &T) -> Infallible {
        let mut beats = interval(self.config.beat());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Nobody knows of this node yet.
        let mut since = self.config.beats_of_life();
        loop {
            beats.tick().await;
            since = since.saturating_add(1);
            if self.is_due(region, since) {
                since = 0;
                // Counted, and tried again: nothing is lost, for totals are told whole.
                let _ = self.sync(region, store).await;
            }
        }
    }

    /// Whether a region is to be told, so many beats after the last time. A node that has nothing to say
    /// says only that it is there; the first to ask for something is then told of at the next beat.
    fn is_due(&self, region: usize, beats: u32) -> bool {
        let Some(way) = self.regions.get(region) else {
            return false;
        };
        let has_news =
            || way.is_cut.load(Ordering::Relaxed) || self.table.is_anything_waiting(region);
        way.is_awaited.load(Ordering::Relaxed)
            || beats >= self.config.beats_of_life()
            || (beats >= EventualConfig::BEATS && has_news())
    }

    /// Tells every region what it does not know yet, once; for a node that ends.
    pub async fn finish<T: Totals>(&self, home: &T, others: &[T]) {
        // Whoever is not reached does not hear of what was admitted last.
        let _ = tokio::join!(self.sync(HOME, home), self.tell_rest(HOME + 1, others));
    }

    async fn tell_rest<T: Totals>(&self, region: usize, others: &[T]) {
        if let [next, rest @ ..] = others {
            let rest = Box::pin(self.tell_rest(region + 1, rest));
            let _ = tokio::join!(self.sync(region, next), rest);
        }
    }

    /// Tells the store of the own region and hears from it, now.
    pub async fn sync_now<T: Totals>(&self, home: &T) -> Result<(), StoreError> {
        self.sync(HOME, home).await
    }

    /// Tells the store of another region, now. Regions count from 0 and leave out the own one.
    pub async fn tell_now<T: Totals>(&self, region: usize, store: &T) -> Result<(), StoreError> {
        self.sync(HOME + 1 + region, store).await
    }

    async fn sync<T: Totals>(&self, region: usize, store: &T) -> Result<(), StoreError> {
        let Some(way) = self.regions.get(region) else {
            return Ok(());
        };
        way.is_awaited.store(false, Ordering::Relaxed);
        let told = Round::new(self, region).tell_all(store).await;
        way.is_cut.store(told.is_err(), Ordering::Relaxed);
        let tally = if told.is_ok() {
            &self.tallies.syncs
        } else {
            // Those behind a cut are not seen and still there.
            self.membership.doubt(self.clock.own());
            &self.tallies.failures
        };
        tally.fetch_add(1, Ordering::Relaxed);
        if told.is_ok() && region == HOME {
            self.forget_idle();
            let own = self.clock.own().nanos().saturating_add(1);
            self.tallies.synced_at.store(own, Ordering::Relaxed);
        }
        told
    }

    /// Forgets, in one part of the table, the counters that nobody has asked about for so long that
    /// nothing of them can matter.
    fn forget_idle(&self) {
        let next = self.next_part.fetch_add(1, Ordering::Relaxed);
        let mut part = self.table.nth(usize::try_from(next).unwrap_or_default());
        let now = self.clock.own();
        part.entries.retain(|_, entry| {
            let idle = now.since(entry.used_at);
            idle < epoch_length(&entry.quota).saturating_mul(2)
        });
    }

    /// What to tell a region of one counter; `None` if it is gone.
    fn draft(&self, digest: u128, region: usize) -> Option<Draft> {
        let mut part = self.table.part(digest);
        let entry = part.entries.get_mut(&digest)?;
        let length = epoch_length(&entry.quota);
        let epoch = epoch_at(self.clock.now(), length);
        let said = entry.told.get_mut(region)?.say(epoch, entry.spent);
        let key = Arc::clone(&entry.key);
        let view = if region == HOME {
            let values = key.values();
            let mirror = self.mirror.peek(key.name(&values), &entry.quota).ok()?;
            entry.view(mirror.limit.saturating_sub(mirror.remaining), said.epoch)
        } else {
            None
        };
        let telling = Telling {
            key: Key::NOBODY,
            length,
            epoch: said.epoch,
            total: said.total,
            late: said.late,
            edge: edge(&entry.quota),
            resets: entry.resets(said.epoch),
            view,
        };
        Some(Draft {
            digest,
            key,
            said,
            telling,
        })
    }

    /// Takes note of what a region said of one counter, if that is still the one that was told of: it may have
    /// been forgotten since and begun anew, or be counted in other epochs.
    fn note(&self, region: usize, draft: &Draft, tally: Tally, asked: Time) {
        let mut part = self.table.part(draft.digest);
        let entry = part.entries.get_mut(&draft.digest);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.key, &draft.key)) else {
            return;
        };
        if region == HOME {
            let values = draft.key.values();
            let news = News {
                said: &draft.said,
                resets: draft.telling.resets,
                tally,
                asked,
            };
            // A window that the mirror cannot tell from others is not counted here at all.
            let _ = self.hear(entry, draft.key.name(&values), &news);
        }
        if let Some(told) = entry.told.get_mut(region) {
            told.acknowledge(&draft.said);
        }
        if entry.is_to_reset {
            // Only now is it known how often it was reset before.
            part.queue_for(draft.digest, HOME);
            self.hurry();
        }
    }
}

// === impl Round ===

impl<'a, C: Clock> Round<'a, C> {
    fn new(eventual: &'a Eventual<C>, region: usize) -> Self {
        let mut waiting = Vec::new();
        for mut part in eventual.table.each() {
            let part = &mut *part;
            for digest in part.waiting[region].drain(..) {
                if let Some(entry) = part.entries.get_mut(&digest) {
                    entry.told[region].queued = false;
                    waiting.push(digest);
                }
            }
        }
        Self {
            eventual,
            region,
            waiting,
        }
    }

    /// Tells of all that waits, and says at least that the node is there.
    async fn tell_all<T: Totals>(mut self, store: &T) -> Result<(), StoreError> {
        if !self.eventual.clock.is_set() {
            // Nobody can tell which epoch it is before the store has said what time it is.
            self.tell(&[], store).await?;
        }
        if self.eventual.clock.is_set() {
            self.tell(&self.waiting, store).await?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Tells of some counters, in one exchange.
    async fn tell<T: Totals>(&self, counters: &[u128], store: &T) -> Result<(), StoreError> {
        let eventual = self.eventual;
        let drafts: Vec<Draft> = counters
            .iter()
            .filter_map(|&digest| eventual.draft(digest, self.region))
            .collect();
        let values: Vec<Values<'_>> = drafts.iter().map(|draft| draft.key.values()).collect();
        let tellings: Vec<Telling<'_>> = drafts
            .iter()
            .zip(&values)
            .map(|(draft, values)| Telling {
                key: draft.key.name(values),
                ..draft.telling
            })
            .collect();
        let asked = eventual.clock.own();
        let mut tallies = Vec::with_capacity(tellings.len());
        let exchange = store.exchange(eventual.teller, &tellings, &mut tallies);
        let exchanged = exchange.await?;
        if self.region == HOME {
            let Exchanged {
                now,
                members,
                previous,
            } = exchanged;
            eventual.clock.set(now);
            let own = eventual.clock.own();
            eventual.membership.check_store(now, previous, members, own);
            eventual.membership.receive(members, own);
        }
        for (draft, tally) in drafts.iter().zip(tallies) {
            eventual.note(self.region, draft, tally, asked);
        }
        Ok(())
    }
}

impl<C: Clock> Drop for Round<'_, C> {
    fn drop(&mut self) {
        for &digest in &self.waiting {
            let mut part = self.eventual.table.part(digest);
            part.queue_for(digest, self.region);
        }
    }
}

/// Which epoch of this length `now` is in.
fn epoch_at(now: Time, length: std::time::Duration) -> u64 {
    let epoch = u128::from(now.nanos()) / length.as_nanos().max(1);
    u64::try_from(epoch).unwrap_or(u64::MAX)
}
