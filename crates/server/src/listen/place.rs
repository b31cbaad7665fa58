//! Places for connections: as many as may be open at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_gateway::{AddressPermit, ConnectionActivity};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    most: usize,
    closed: Arc<Notify>,
    open: Arc<Mutex<HashMap<u64, Arc<ConnectionActivity>>>>,
    next_id: AtomicU64,
    /// Whether it was told that all are taken.
    is_full: bool,
}

/// The place of one connection, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    /// Held for its drop.
    of_address: Option<AddressPermit>,
    closed: Arc<Notify>,
    open: Arc<Mutex<HashMap<u64, Arc<ConnectionActivity>>>>,
    id: u64,
    activity: Arc<ConnectionActivity>,
}

/// One connection in this many is evicted at a time. A search for the idlest looks at all connections, so a flood of new ones must
/// not cause a search for each of them.
const EVICTED_AT_ONCE: usize = 64;

// === impl Places ===

impl Places {
    /// At least one, and no more than a semaphore can count.
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
            closed: Arc::new(Notify::new()),
            open: Arc::default(),
            next_id: AtomicU64::new(0),
            is_full: false,
        }
    }

    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// A place, if one is free.
    pub(super) fn take_now(&self) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(self.place(Some(permit)))
    }

    /// A place, once one is free.
    pub(super) async fn take(&self) -> Place {
        // The semaphore is never closed, so there is always a permit.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        self.place(permit)
    }

    /// Ready when a connection closes.
    pub(super) async fn one_closed(&self) {
        self.closed.notified().await;
    }

    /// Whether it is news that all places are taken.
    pub(super) fn has_filled(&mut self) -> bool {
        !std::mem::replace(&mut self.is_full, true)
    }

    /// Whether it is news that there is room: a tenth of the places, for a server at its bound would
    /// else say so with every client that comes or goes.
    pub(super) fn has_relaxed(&mut self) -> bool {
        let is_news = self.is_full && self.free.available_permits() >= self.most.div_ceil(10);
        self.is_full &= !is_news;
        is_news
    }

    /// Tells the connections that have been idle for longest to close, if any is idle.
    pub(super) fn evict_idlest(&self) {
        let open = lock(&self.open);
        let idle = open.values().filter_map(|activity| {
            let since = activity.idle_since()?;
            Some((since, activity))
        });
        let mut idle: Vec<(Duration, &Arc<ConnectionActivity>)> = idle.collect();
        let most = self.most.div_ceil(EVICTED_AT_ONCE);
        if idle.len() > most {
            idle.select_nth_unstable_by_key(most, |(since, _)| *since);
            idle.truncate(most);
        }
        for (_, activity) in idle {
            activity.evict();
        }
    }

    fn place(&self, permit: Option<OwnedSemaphorePermit>) -> Place {
        let activity = Arc::new(ConnectionActivity::default());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(id, Arc::clone(&activity));
        Place {
            _permit: permit,
            of_address: None,
            closed: Arc::clone(&self.closed),
            open: Arc::clone(&self.open),
            id,
            activity,
        }
    }
}

// === impl Place ===

impl Place {
    /// The same place, with the permit of the peer's address.
    pub(super) fn of_address(mut self, permit: Option<AddressPermit>) -> Self {
        self.of_address = permit;
        self
    }

    /// The requests under way on its connection.
    pub(crate) const fn activity(&self) -> &Arc<ConnectionActivity> {
        &self.activity
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.id);
        self.closed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Place, Places};

    #[test]
    fn full_and_free_again_are_news_once() {
        let mut places = Places::new(20);
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take_now()).collect();
        assert_eq!(taken.len(), 20);
        assert!(places.has_filled());
        assert!(!places.has_filled());
        taken.pop();
        assert!(!places.has_relaxed(), "one of twenty is no room");
        taken.pop();
        assert!(places.has_relaxed());
        assert!(!places.has_relaxed());
    }

    #[tokio::test]
    async fn a_place_comes_back_when_its_connection_closes() {
        let places = Places::new(1);
        let place = places.take().await;
        assert!(places.take_now().is_none());
        drop(place);
        places.one_closed().await;
        assert!(places.take_now().is_some());
    }

    #[test]
    fn the_idlest_is_evicted_and_a_busy_one_is_not() {
        let places = Places::new(3);
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take_now()).collect();
        taken[0].activity().begin();
        taken[1].activity().touch();
        places.evict_idlest();
        let told = taken.iter().map(|place| place.activity().idle_since());
        let told: Vec<bool> = told.map(|since| since.is_none()).collect();
        // The first is busy, and the third was idle for longer than the second.
        assert_eq!(told, [true, false, true]);
        taken[0].activity().end();
        let is_open = taken[0].activity().idle_since().is_some();
        assert!(is_open, "the first was not told");
        taken.clear();
        assert!(super::lock(&places.open).is_empty());
    }

    #[test]
    fn there_is_always_one_place() {
        assert_eq!(Places::new(0).most(), 1);
        assert!(Places::new(usize::MAX).take_now().is_some());
    }
}
