//! A bound on the connections of one client address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_observe::LogSampler;
use tracing::warn;

/// The open connections of each address. IPv6 addresses of one /64 count as one, because a client usually has them all.
///
/// Connections come and go seldom enough for one lock.
#[derive(Debug, Default)]
pub struct AddressConnections {
    open: Mutex<HashMap<IpAddr, usize>>,
    denial_log: LogSampler,
}

/// The permit of one connection, released when dropped.
#[derive(Debug)]
pub struct AddressPermit {
    connections: Arc<AddressConnections>,
    address: IpAddr,
}

// === impl AddressConnections ===

impl AddressConnections {
    /// A permit for a connection of `address`, unless that has `most` already.
    pub fn take(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<AddressPermit> {
        let address = client_network(address);
        let mut table = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = table.entry(address).or_default();
        if *open >= most {
            drop(table);
            if let Some(n_denied) = self.denial_log.count() {
                warn!(
                    max_connections_per_address = most,
                    n_denied,
                    "connection limit of a client address reached; new connections are closed"
                );
            }
            return None;
        }
        *open += 1;
        Some(AddressPermit {
            connections: Arc::clone(self),
            address,
        })
    }
}

// === impl AddressPermit ===

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let table = &self.connections.open;
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut open) = table.entry(self.address) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }
}

/// The address that stands for all of one client: for IPv6 that of the /64.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_no_more() {
        let connections = Arc::new(AddressConnections::default());
        let take = |address: &str| connections.take(address.parse().unwrap(), 2);
        let first = take("192.0.2.1");
        let second = take("::ffff:192.0.2.1");
        assert!(first.is_some() && second.is_some());
        assert!(take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        drop(first);
        assert!(take("192.0.2.1").is_some());
        drop(second);
        assert!(connections.open.lock().unwrap().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let connections = Arc::new(AddressConnections::default());
        let take = |address: &str| connections.take(address.parse().unwrap(), 1);
        let _first = take("2001:db8::1");
        assert!(take("2001:db8::2").is_none());
        assert!(take("2001:db8:0:1::2").is_some());
    }
}
