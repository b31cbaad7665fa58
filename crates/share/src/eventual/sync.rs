//! Exchanging totals with the regions.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_store::{Clock, CounterSums, CounterUpdate, ExchangeReply, StoreError, Totals};
use tokio::time::{MissedTickBehavior, interval};

use super::entry::{Draft, Entry};
use super::history::Overshoot;
use super::slots::SlotLayout;
use super::{Eventual, EventualConfig, seconds};

/// The region whose store a node also reads.
const HOME: usize = 0;

/// The most counters in one exchange, which is one round trip; so many that few nodes ever need a second one,
/// and so few that the memory for it is some megabytes.
const MOST_COUNTERS: usize = 8 * 1024;

/// Counters in one exchange after many failed: a Redis that cannot do so many in time is of no use.
const FEWEST_COUNTERS: usize = 256;

/// The counters that wait to be exchanged with one region. Those that were not when it is dropped wait
/// again.
struct SyncRound<'a, C: Clock> {
    eventual: &'a Eventual<C>,
    region: usize,
    queue: Vec<u128>,
}

// === impl Eventual ===

impl<C: Clock> Eventual<C> {
    /// Exchanges totals for as long as it is polled; needs a tokio runtime with timers. `home` is the
    /// store of this node's region, `others` are those of the other regions, as many as were announced.
    pub async fn run<T: Totals>(&self, home: &T, others: &[T]) -> Infallible {
        let rest = Box::pin(self.keep_sending(HOME + 1, others));
        tokio::join!(self.keep_syncing(HOME, home), rest).0
    }

    async fn keep_sending<T: Totals>(&self, region: usize, others: &[T]) {
        if let [next, rest @ ..] = others {
            let rest = Box::pin(self.keep_sending(region + 1, rest));
            tokio::join!(self.keep_syncing(region, next), rest);
        }
    }

    async fn keep_syncing<T: Totals>(&self, region: usize, store: &T) -> Infallible {
        let mut beats = interval(self.config.beat());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // No node knows of this one yet.
        let mut since = self.config.beats_of_life();
        loop {
            beats.tick().await;
            since = since.saturating_add(1);
            if self.is_due(region, since) {
                since = 0;
                // Counted, and tried again: nothing is lost, because totals are sent whole.
                let _ = self.sync(region, store).await;
            }
        }
    }

    /// Whether an exchange with a region is due, so many beats after the last one. An idle node only renews
    /// its membership; the first request after that is sent at the next beat.
    fn is_due(&self, region: usize, beats: u32) -> bool {
        let Some(way) = self.regions.get(region) else {
            return false;
        };
        let has_news =
            || way.is_cut.load(Ordering::Relaxed) || self.table.is_anything_queued(region);
        way.is_awaited.load(Ordering::Relaxed)
            || beats >= self.config.beats_of_life()
            || (beats >= EventualConfig::BEATS && has_news())
    }

    /// Sends every region what it does not know yet, once; for a node that ends.
    pub async fn finish<T: Totals>(&self, home: &T, others: &[T]) {
        // A region that cannot be reached does not get the last totals.
        let _ = tokio::join!(self.sync(HOME, home), self.send_rest(HOME + 1, others));
    }

    async fn send_rest<T: Totals>(&self, region: usize, others: &[T]) {
        if let [next, rest @ ..] = others {
            let rest = Box::pin(self.send_rest(region + 1, rest));
            let _ = tokio::join!(self.sync(region, next), rest);
        }
    }

    /// Exchanges totals with the store of the own region, now.
    pub async fn sync_now<T: Totals>(&self, home: &T) -> Result<(), StoreError> {
        self.sync(HOME, home).await
    }

    /// Sends totals to the store of another region, now. Regions count from 0 and leave out the own one.
    pub async fn tell_now<T: Totals>(&self, region: usize, store: &T) -> Result<(), StoreError> {
        self.sync(HOME + 1 + region, store).await
    }

    async fn sync<T: Totals>(&self, region: usize, store: &T) -> Result<(), StoreError> {
        let Some(way) = self.regions.get(region) else {
            return Ok(());
        };
        way.is_awaited.store(false, Ordering::Relaxed);
        let synced = SyncRound::new(self, region).exchange_all(store).await;
        way.is_cut.store(synced.is_err(), Ordering::Relaxed);
        let tally = if synced.is_ok() {
            &self.tallies.syncs
        } else {
            // Nodes behind a cut are not seen and still there.
            self.membership.doubt(self.clock.own());
            &self.tallies.failures
        };
        tally.fetch_add(1, Ordering::Relaxed);
        if region == HOME {
            self.forget_idle();
        }
        if synced.is_ok() && region == HOME {
            let own = self.clock.own().nanos().saturating_add(1);
            self.tallies.synced_at.store(own, Ordering::Relaxed);
        }
        synced
    }

    /// Forgets, in one part of the table, the counters that were idle for so long that nothing of them can
    /// matter, and of the others what no longer matters.
    fn forget_idle(&self) {
        let next = self.next_part.fetch_add(1, Ordering::Relaxed);
        let mut part = self.table.nth(usize::try_from(next).unwrap_or_default());
        let (own, now) = (self.clock.own(), self.clock.now());
        part.retain(|entry| {
            let layout = SlotLayout::of(&entry.quota);
            self.advance(entry, layout, layout.at(now));
            let idle = seconds(own).saturating_sub(entry.used_at);
            // A second more, because what is left of one is not counted.
            Duration::from_secs(u64::from(idle)) <= layout.expiry() + Duration::from_secs(1)
        });
    }

    /// Dates all that was admitted before the store's time was known.
    fn redate_all(&self) {
        let now = self.clock.now();
        for mut part in self.table.each() {
            part.retain(|entry| {
                let layout = SlotLayout::of(&entry.quota);
                entry.redate(layout, layout.at(now), self.next_life());
                true
            });
        }
    }

    /// Forgets what no longer matters at a slot.
    pub(super) fn advance(&self, entry: &mut Entry, layout: SlotLayout, slot: u64) {
        if entry.is_ahead(layout, slot) {
            entry.redate(layout, slot, self.next_life());
        }
        entry.advance(layout, slot, u64::from(self.members()));
    }

    /// What to send a region about one counter; `None` if it is gone.
    fn draft(&self, digest: u128, region: usize) -> Option<Draft> {
        let now = self.clock.now();
        self.table.part(digest).update(digest, |entry| {
            let layout = SlotLayout::of(&entry.quota);
            let slot = layout.at(now);
            self.advance(entry, layout, slot);
            entry.draft(layout, slot, region)
        })
    }

    /// Takes note of a reply about one counter, if that is still the one that was sent: it may have been
    /// forgotten since and begun anew, or be counted in other slots.
    fn receive(&self, region: usize, draft: &Draft, reply: &CounterSums) {
        let mut part = self.table.part(draft.digest);
        let overshoot = part.update(draft.digest, |entry| {
            if entry.life != draft.life {
                return None;
            }
            entry.acknowledge(draft, region);
            (region == HOME).then(|| self.receive_sums(entry, draft, reply))
        });
        if let Some(Some((overshoot, has_more))) = overshoot {
            let tallies = &self.tallies;
            tallies
                .overshoot
                .fetch_add(overshoot.more, Ordering::Relaxed);
            tallies
                .worst_overshoot
                .fetch_max(overshoot.worst, Ordering::Relaxed);
            if has_more {
                for region in 0..self.regions.len() {
                    part.queue_for(draft.digest, region);
                }
                self.hurry();
            }
        }
    }

    /// Takes over the sums of all nodes. Returns the overshoot that they show, and whether there is more
    /// to send.
    fn receive_sums(
        &self,
        entry: &mut Entry,
        draft: &Draft,
        reply: &CounterSums,
    ) -> (Overshoot, bool) {
        entry.receive(draft, reply);
        let quota = std::sync::Arc::clone(&entry.quota);
        let overshoot = entry.history.report_overshoot(&quota, draft.layout);
        let is_reset = entry.is_to_reset();
        if is_reset {
            let now = self.clock.now();
            self.advance(entry, draft.layout, draft.layout.at(now));
            entry.complete_reset(draft.layout, now);
        }
        (overshoot, is_reset)
    }
}

// === impl SyncRound ===

impl<'a, C: Clock> SyncRound<'a, C> {
    fn new(eventual: &'a Eventual<C>, region: usize) -> Self {
        let mut queue = Vec::new();
        for mut part in eventual.table.each() {
            part.take_queue(region, |digest| queue.push(digest));
        }
        Self {
            eventual,
            region,
            queue,
        }
    }

    /// Exchanges all that waits, and renews the membership at least.
    async fn exchange_all<T: Totals>(mut self, store: &T) -> Result<(), StoreError> {
        if !self.eventual.clock.is_set() {
            // Which slot it is, only the store's time says.
            self.exchange(&[], store).await?;
            self.eventual.redate_all();
        }
        if self.eventual.clock.is_set() {
            loop {
                let batch = self.batch_size();
                let rest = self.queue.len().saturating_sub(batch);
                let exchanged = self.exchange(&self.queue[rest..], store).await;
                self.adapt_batch_size(batch, exchanged.is_ok());
                exchanged?;
                self.queue.truncate(rest);
                if rest == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// How many counters to exchange at once.
    fn batch_size(&self) -> usize {
        let failed = self.eventual.regions[self.region]
            .halvings
            .load(Ordering::Relaxed);
        (MOST_COUNTERS >> failed.min(8)).max(FEWEST_COUNTERS)
    }

    /// Exchanges half as many counters after a failure, which may be due to their number, and twice as many
    /// once all that wait fit into one exchange.
    fn adapt_batch_size(&self, batch: usize, is_ok: bool) {
        let halvings = &self.eventual.regions[self.region].halvings;
        let now = halvings.load(Ordering::Relaxed);
        if is_ok && self.queue.len() <= batch {
            halvings.store(now.saturating_sub(1), Ordering::Relaxed);
        } else if !is_ok && self.queue.len() > FEWEST_COUNTERS && batch > FEWEST_COUNTERS {
            halvings.store(now + 1, Ordering::Relaxed);
        }
    }

    /// Exchanges some counters at once.
    async fn exchange<T: Totals>(&self, counters: &[u128], store: &T) -> Result<(), StoreError> {
        let eventual = self.eventual;
        let drafts: Vec<Draft> = counters
            .iter()
            .filter_map(|&digest| eventual.draft(digest, self.region))
            .collect();
        let updates: Vec<CounterUpdate<'_>> = drafts.iter().map(Draft::update).collect();
        let mut replies = Vec::with_capacity(updates.len());
        let exchange = store.exchange(eventual.sender, &updates, &mut replies);
        let exchanged = exchange.await?;
        if self.region == HOME {
            let ExchangeReply {
                now,
                members,
                previous,
            } = exchanged;
            eventual.clock.set(now);
            let own = eventual.clock.own();
            eventual.membership.check_store(now, previous, members, own);
            eventual.membership.receive(members, own);
        }
        for (draft, reply) in drafts.iter().zip(&replies) {
            eventual.receive(self.region, draft, reply);
        }
        Ok(())
    }
}

impl<C: Clock> Drop for SyncRound<'_, C> {
    fn drop(&mut self) {
        for &digest in &self.queue {
            let mut part = self.eventual.table.part(digest);
            part.queue_for(digest, self.region);
        }
    }
}
