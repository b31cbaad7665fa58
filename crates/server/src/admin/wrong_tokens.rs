//! Wrong tokens, answered ever more slowly to the address that sends them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_gateway::client_network;
use tokio::time::{Instant, sleep};

use crate::peer::Peer;

/// The wrong tokens of each address in the last minute, of IPv6 of each /64. The right token is never slowed.
#[derive(Debug, Default)]
pub(super) struct WrongTokens(Mutex<HashMap<Option<IpAddr>, Recent>>);

/// The wrong tokens of one address.
#[derive(Clone, Copy, Debug)]
struct Recent {
    count: u32,
    last: Instant,
}

/// Wrong tokens of an address that are answered at once: those of a person who mistypes.
const FREE: u32 = 4;

/// The delay of the first one after them; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(50);

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(2);

/// The time after its last wrong token in which an address is remembered.
const MEMORY: Duration = Duration::from_mins(1);

/// Addresses that are remembered. With more of them, all are forgotten: they had four guesses each.
const MAX_ADDRESSES: usize = 4_096;

// === impl WrongTokens ===

impl WrongTokens {
    /// Notes a wrong token of `peer`, and waits for as long as its answer is to take.
    pub(super) async fn slow_down(&self, peer: Peer) {
        sleep(self.delay(peer)).await;
    }

    /// Notes a wrong token of `peer`, and returns the time that its answer is to take.
    fn delay(&self, peer: Peer) -> Duration {
        let address = match peer {
            Peer::Tcp(address) => Some(client_network(address.ip())),
            Peer::Unix => None,
        };
        let now = Instant::now();
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= MAX_ADDRESSES && !table.contains_key(&address) {
            table.retain(|_, recent| now.duration_since(recent.last) < MEMORY);
            if table.len() >= MAX_ADDRESSES {
                table.clear();
            }
        }
        let recent = table.entry(address).or_insert(Recent {
            count: 0,
            last: now,
        });
        if now.duration_since(recent.last) >= MEMORY {
            recent.count = 0;
        }
        recent.count = recent.count.saturating_add(1);
        recent.last = now;
        match recent.count.saturating_sub(FREE) {
            0 => Duration::ZERO,
            n => FIRST
                .saturating_mul(2_u32.saturating_pow(n - 1))
                .min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::*;

    fn peer(n: u16) -> Peer {
        let [high, low] = n.to_be_bytes();
        Peer::Tcp(SocketAddr::from(([10, 0, high, low], 1)))
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_of_an_address_are_slowed_and_forgotten() {
        let wrong = WrongTokens::default();
        let delays: Vec<u128> = (0..12).map(|_| wrong.delay(peer(1)).as_millis()).collect();
        let expected = [0, 0, 0, 0, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000];
        assert_eq!(delays, expected);
        assert_eq!(wrong.delay(peer(2)), Duration::ZERO);
        tokio::time::advance(MEMORY).await;
        assert_eq!(wrong.delay(peer(1)), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_ipv6_is_slowed_as_one() {
        let wrong = WrongTokens::default();
        let delay = |network: u16, host: u16| {
            let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host);
            wrong.delay(Peer::Tcp(SocketAddr::from((ip, 1))))
        };
        for host in 0..4 {
            assert_eq!(delay(1, host), Duration::ZERO);
        }
        assert_eq!(delay(1, 4), FIRST);
        assert_eq!(delay(2, 4), Duration::ZERO);
        // An IPv4 address stays one, however it is written.
        let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped();
        for address in [IpAddr::from([192, 0, 2, 1]), mapped.into()].repeat(2) {
            assert_eq!(wrong.delay(Peer::Tcp((address, 1).into())), Duration::ZERO);
        }
        assert_eq!(wrong.delay(Peer::Tcp((mapped, 1).into())), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn the_addresses_that_are_remembered_are_bounded() {
        let wrong = WrongTokens::default();
        for n in 0..10_000 {
            wrong.delay(peer(n));
        }
        assert!(wrong.0.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
