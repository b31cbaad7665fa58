//! Places for connections: as many as may be open at once.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tidegate_gateway::{AddressPermit, ConnectionActivity};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    most: usize,
    closed: Arc<Notify>,
    open: Arc<Mutex<HashMap<u64, Arc<ConnectionActivity>>>>,
    next_id: AtomicU64,
    /// Those that were idle for longest when they were searched for, the idlest last, with the time since which each was idle.
    idlest: Vec<(Duration, Weak<ConnectionActivity>)>,
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

/// One connection in this many is found by one search. A search for the idlest looks at all connections, so a flood of new ones must
/// not cause a search for each of them.
const FOUND_AT_ONCE: usize = 64;

/// The time after which a full listener looks again for a connection that has become idle.
const EVICT_PAUSE: Duration = Duration::from_millis(100);

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
            idlest: Vec::new(),
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

    /// A place, once one is free; the connection that has been idle for longest makes room.
    pub(super) async fn take(&mut self) -> Place {
        let mut evicted: Option<Arc<ConnectionActivity>> = None;
        loop {
            // A connection that is slow to close is waited for, because another one would be evicted for nothing.
            if !evicted.as_ref().is_some_and(|it| it.is_evicted()) {
                evicted = self.evict_idlest();
            }
            let permit = Arc::clone(&self.free).acquire_owned();
            if let Ok(permit) = timeout(EVICT_PAUSE, permit).await {
                // The semaphore is never closed, so there is always a permit.
                return self.place(permit.ok());
            }
        }
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

    /// Tells the connection that has been idle for longest to close, if one is idle.
    fn evict_idlest(&mut self) -> Option<Arc<ConnectionActivity>> {
        self.pop_idlest().or_else(|| {
            self.find_idlest();
            self.pop_idlest()
        })
    }

    /// Evicts the idlest of those that were found before and have been idle since.
    fn pop_idlest(&mut self) -> Option<Arc<ConnectionActivity>> {
        while let Some((since, activity)) = self.idlest.pop() {
            let activity = activity.upgrade();
            if let Some(activity) = activity.filter(|it| it.idle_since() == Some(since)) {
                activity.evict();
                return Some(activity);
            }
        }
        None
    }

    fn find_idlest(&mut self) {
        let open = lock(&self.open);
        let idle = open.values().filter_map(|activity| {
            let since = activity.idle_since()?;
            Some((since, Arc::downgrade(activity)))
        });
        self.idlest.extend(idle);
        let most = self.most.div_ceil(FOUND_AT_ONCE);
        if self.idlest.len() > most {
            self.idlest
                .select_nth_unstable_by_key(most, |(since, _)| *since);
            self.idlest.truncate(most);
        }
        self.idlest
            .sort_unstable_by_key(|(since, _)| Reverse(*since));
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
    use std::pin::pin;

    use tokio::time::timeout;

    use super::{EVICT_PAUSE, FOUND_AT_ONCE, Place, Places};

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
        let mut places = Places::new(1);
        let place = places.take().await;
        assert!(places.take_now().is_none());
        drop(place);
        places.one_closed().await;
        assert!(places.take_now().is_some());
    }

    /// The connections that were told to close, or are busy.
    fn told(taken: &[Place]) -> Vec<usize> {
        let is_told = |place: &Place| place.activity().idle_since().is_none();
        let told = taken.iter().enumerate().filter(|(_, it)| is_told(it));
        told.map(|(index, _)| index).collect()
    }

    #[test]
    fn the_idlest_is_evicted_and_a_busy_one_is_not() {
        let mut places = Places::new(3);
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take_now()).collect();
        taken[0].activity().begin();
        taken[1].activity().touch();
        assert!(places.evict_idlest().is_some());
        // The first is busy, and the third was idle for longer than the second.
        assert_eq!(told(&taken), [0, 2]);
        taken[0].activity().end();
        assert_eq!(told(&taken), [2], "the first was not told");
        taken.clear();
        assert!(super::lock(&places.open).is_empty());
    }

    #[test]
    fn one_search_finds_the_idlest_for_several_new_connections() {
        let mut places = Places::new(2 * FOUND_AT_ONCE);
        let taken: Vec<Place> = std::iter::from_fn(|| places.take_now()).collect();
        for n_evicted in 1..4 {
            assert!(places.evict_idlest().is_some());
            let evicted: Vec<usize> = (0..n_evicted).collect();
            assert_eq!(told(&taken), evicted);
        }
        // One that was found, but has been in use since, is not evicted.
        taken[3].activity().touch();
        assert!(places.evict_idlest().is_some());
        assert_eq!(told(&taken), [0, 1, 2, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_slow_to_close_is_the_only_one_evicted() {
        let mut places = Places::new(2);
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take_now()).collect();
        let mut place = pin!(places.take());
        assert!(timeout(10 * EVICT_PAUSE, place.as_mut()).await.is_err());
        assert_eq!(told(&taken), [0]);
        drop(taken.remove(0));
        place.await;
        assert_eq!(told(&taken), [0; 0]);
    }

    #[test]
    fn there_is_always_one_place() {
        assert_eq!(Places::new(0).most(), 1);
        assert!(Places::new(usize::MAX).take_now().is_some());
    }
}
