//! Places for connections: as many as may be open at once.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    most: usize,
    closed: Arc<Notify>,
    /// Whether it was told that all are taken.
    is_full: bool,
}

/// The place of one connection, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    closed: Arc<Notify>,
}

// === impl Places ===

impl Places {
    /// At least one, and no more than a semaphore can count.
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
            closed: Arc::new(Notify::new()),
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

    fn place(&self, permit: Option<OwnedSemaphorePermit>) -> Place {
        Place {
            _permit: permit,
            closed: Arc::clone(&self.closed),
        }
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.closed.notify_one();
    }
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
    fn there_is_always_one_place() {
        assert_eq!(Places::new(0).most(), 1);
        assert!(Places::new(usize::MAX).take_now().is_some());
    }
}
