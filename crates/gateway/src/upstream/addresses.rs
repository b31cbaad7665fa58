//! The addresses of one target: a literal, or the last good look-up of a name.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

use super::timer::now;
use crate::config::TargetConfig;

/// Looks up names.
pub(super) trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a host.
    fn resolve(&self, host: &str, port: u16) -> ResolvedAddresses;
}

/// The addresses of a host, when they are known.
pub(super) type ResolvedAddresses =
    Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The resolver of the system.
#[derive(Debug)]
pub(super) struct SystemResolver;

/// The addresses of one target, shared by all threads.
#[derive(Debug)]
pub(super) struct AddressList {
    host: String,
    port: u16,
    current: ArcSwapOption<Vec<SocketAddr>>,
    /// Changes with the list, so that connections can tell cheaply if they are of the current one.
    version: AtomicU64,
    /// Held during a look-up; has the time before which a failed one is not repeated.
    lookup: Mutex<Option<Instant>>,
    is_literal: bool,
}

/// A name has a few addresses; a look-up that yields more is cut off.
const MAX_ADDRESSES: usize = 64;

/// Time between two look-ups of a name that has never been found, so that requests do not become look-ups.
const RETRY_LOOKUP_AFTER: Duration = Duration::from_secs(1);

// === impl SystemResolver ===

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> ResolvedAddresses {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), port)).await?;
            Ok(found.collect())
        })
    }
}

// === impl AddressList ===

impl AddressList {
    pub(super) fn new(target: &TargetConfig) -> Self {
        let literal: Option<IpAddr> = target.host.parse().ok();
        let addresses = literal.map(|ip| Arc::new(vec![SocketAddr::new(ip, target.port)]));
        Self {
            host: target.host.clone(),
            port: target.port,
            current: ArcSwapOption::new(addresses),
            version: AtomicU64::new(0),
            lookup: Mutex::new(None),
            is_literal: literal.is_some(),
        }
    }

    /// True if it never changes.
    pub(super) fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// The number of the current list.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.current
            .load()
            .as_ref()
            .is_some_and(|addresses| addresses.contains(&address))
    }

    /// The current list. The first caller looks the name up, others wait for it.
    pub(super) async fn get(&self, resolver: &dyn Resolver) -> io::Result<Arc<Vec<SocketAddr>>> {
        if let Some(addresses) = self.current.load_full() {
            return Ok(addresses);
        }
        let mut retry_at = self.lookup.lock().await;
        if let Some(addresses) = self.current.load_full() {
            return Ok(addresses);
        }
        if retry_at.is_some_and(|retry_at| now() < retry_at) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the last look-up of the name failed",
            ));
        }
        let looked_up = self.look_up(resolver).await;
        if looked_up.is_err() {
            *retry_at = Some(now() + RETRY_LOOKUP_AFTER);
        }
        looked_up
    }

    /// Looks the name up again. On failure, the last good list stays.
    pub(super) async fn refresh(&self, resolver: &dyn Resolver) {
        let mut retry_at = self.lookup.lock().await;
        match self.look_up(resolver).await {
            Ok(_) => *retry_at = None,
            Err(_) => *retry_at = Some(now() + RETRY_LOOKUP_AFTER),
        }
    }

    async fn look_up(&self, resolver: &dyn Resolver) -> io::Result<Arc<Vec<SocketAddr>>> {
        let found = resolver.resolve(&self.host, self.port).await;
        let found = found.and_then(|mut addresses| {
            addresses.sort_unstable();
            addresses.dedup();
            addresses.truncate(MAX_ADDRESSES);
            if addresses.is_empty() {
                Err(io::Error::new(io::ErrorKind::NotFound, "no address found"))
            } else {
                Ok(addresses)
            }
        });
        let host = &self.host;
        let addresses = found.inspect_err(|error| {
            if self.current.load().is_some() {
                warn!(%host, %error, "DNS look-up failed; the last addresses stay in use");
            } else {
                warn!(%host, %error, "DNS look-up failed");
            }
        })?;
        Ok(self.replace(addresses))
    }

    fn replace(&self, addresses: Vec<SocketAddr>) -> Arc<Vec<SocketAddr>> {
        let old = self.current.load_full();
        if let Some(old) = old.as_ref().filter(|old| ***old == addresses) {
            return Arc::clone(old);
        }
        if old.is_some() {
            info!(host = %self.host, ?addresses, "addresses changed");
        }
        let addresses = Arc::new(addresses);
        self.current.store(Some(Arc::clone(&addresses)));
        self.version.fetch_add(1, Ordering::Release);
        addresses
    }
}
