//! One target as all threads see it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::addresses::AddressList;
use super::health::TargetHealth;
use crate::config::TargetConfig;

/// One target: its addresses, its health, its requests in progress.
#[derive(Debug)]
pub(super) struct TargetState {
    pub(super) config: TargetConfig,
    /// Its URL, for logs.
    pub(super) name: String,
    pub(super) addresses: AddressList,
    pub(super) health: TargetHealth,
    in_progress: AtomicUsize,
}

// === impl TargetState ===

impl TargetState {
    pub(super) fn new(config: &TargetConfig) -> Self {
        Self {
            config: config.clone(),
            name: config.to_string(),
            addresses: AddressList::new(config),
            health: TargetHealth::default(),
            in_progress: AtomicUsize::new(0),
        }
    }

    /// Requests that have begun and whose responses have not ended, over all threads.
    pub(super) fn in_progress(&self) -> usize {
        self.in_progress.load(Ordering::Relaxed)
    }

    pub(super) fn begin_request(&self) {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_request(&self) {
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}
