//! Whose address counts when proxies stand between.

use std::iter;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::str::FromStr;

use tidegate_rules::{Network, NetworkFault, Networks};

use crate::trail::{Quotes, Trail};
use crate::{address, forwarded};

/// How the address of a client is found.
///
/// The socket's peer counts. Only if it is trusted, the header is read, from the right, where trusted
/// proxies wrote: as long as an address belongs to a trusted proxy, the one it names counts instead. An
/// element that names no address ends the walk where it is, never further left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddress {
    /// Who is believed.
    pub trust: Trust,
    /// Where a proxy says for whom it speaks. Only this header is read.
    pub header: AddressHeader,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Somebody at an address.
    Address(IpAddr),
    /// Somebody on this machine, at a unix socket.
    Unix,
}

/// Which proxies are believed about their clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those at these addresses.
    Proxies(Proxies),
    /// So many, wherever they are: for proxies whose addresses are not known. Whoever reaches the
    /// listener is the first of them, so none but a proxy may.
    Hops(NonZeroU8),
}

/// A set of trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    list: Vec<Proxy>,
    networks: Networks,
}

/// One entry of a list of trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Whoever may open our unix socket: `unix`.
    Unix,
    /// Every address of a network.
    Network(Network),
}

/// A text that names no proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyFault {
    /// It is nothing of the kind.
    #[error("it is no proxy; write a network such as 10.0.0.0/8, an address or `unix`")]
    NotAProxy,
    /// It is nearly a network.
    #[error(transparent)]
    BadNetwork(NetworkFault),
}

/// The header in which proxies say for whom they speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressHeader {
    /// `X-Forwarded-For`, all its lines as one list.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239), all its lines as one list.
    Forwarded,
    /// One address in a header of this name, in lower case: `cf-connecting-ip`, `true-client-ip`,
    /// `x-real-ip`.
    Single(String),
}

/// Elements of a header that are looked at; further left there are only more trusted proxies.
const MAX_HOPS: usize = 32;

// === impl ClientAddress ===

impl ClientAddress {
    /// Whether what `peer` says about its client is believed.
    pub fn trusts(&self, peer: Peer) -> bool {
        match (&self.trust, peer) {
            (Trust::Hops(_), _) => true,
            (Trust::Proxies(proxies), Peer::Unix) => proxies.list.contains(&Proxy::Unix),
            (Trust::Proxies(proxies), Peer::Address(address)) => proxies.hold(address),
        }
    }

    /// The address of the client, from the peer and all lines of [`AddressHeader::name`] in the order
    /// of the request. An IPv4 address in the clothes of IPv6 (mapped, NAT64) is given as itself.
    ///
    /// `None` if the peer is at a unix socket and no header says more.
    pub fn find<'a, L>(&self, peer: Peer, lines: L) -> Option<IpAddr>
    where
        L: IntoIterator<Item = &'a [u8], IntoIter: DoubleEndedIterator>,
    {
        if self.trusts(peer) {
            self.find_behind(peer, lines)
        } else {
            of_peer(peer)
        }
    }

    /// The same for a peer that is [trusted](Self::trusts).
    pub fn find_behind<'a, L>(&self, peer: Peer, lines: L) -> Option<IpAddr>
    where
        L: IntoIterator<Item = &'a [u8], IntoIter: DoubleEndedIterator>,
    {
        let told = self.told(lines.into_iter());
        told.map(address::unmap).or_else(|| of_peer(peer))
    }

    /// The address that a trusted peer tells.
    fn told<'a>(&self, mut lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> Option<IpAddr> {
        match self.header {
            AddressHeader::XForwardedFor => {
                let trail = Trail::new(lines, Quotes::Plain);
                self.walk(trail.map(|element| element.and_then(address::parse)))
            }
            AddressHeader::Forwarded => {
                let trail = Trail::new(lines, Quotes::Respected);
                self.walk(trail.map(|element| element.and_then(forwarded::parse)))
            }
            AddressHeader::Single(_) => {
                let line = lines.next()?;
                // Of two lines the client may have written one.
                let is_only = lines.next().is_none();
                address::parse(line).filter(|_| is_only)
            }
        }
    }

    /// Goes from proxy to proxy until one is not trusted or none says more.
    fn walk(&self, hops: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut client = None;
        // The peer is the first proxy, so who it names would be the second.
        for (proxies_before, hop) in iter::zip(1.., hops).take(MAX_HOPS) {
            let Some(address) = hop else { break };
            client = Some(address);
            let goes_on = match &self.trust {
                Trust::Proxies(proxies) => proxies.hold(address),
                Trust::Hops(hops) => proxies_before < hops.get(),
            };
            if !goes_on {
                break;
            }
        }
        client
    }
}

fn of_peer(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Address(address) => Some(address::unmap(address)),
        Peer::Unix => None,
    }
}

// === impl Trust ===

impl Default for Trust {
    /// The proxies of this machine.
    fn default() -> Self {
        let loopback = ["127.0.0.0/8", "::1"].into_iter().flat_map(str::parse);
        let local = iter::once(Proxy::Unix).chain(loopback.map(Proxy::Network));
        Self::Proxies(local.collect())
    }
}

// === impl Proxies ===

impl Proxies {
    /// The list that it was made of.
    pub fn list(&self) -> &[Proxy] {
        &self.list
    }

    /// True if `address` is one of them.
    pub fn hold(&self, address: IpAddr) -> bool {
        self.networks.holds(address)
    }
}

impl Default for Proxies {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl FromIterator<Proxy> for Proxies {
    fn from_iter<T: IntoIterator<Item = Proxy>>(proxies: T) -> Self {
        let list: Vec<Proxy> = proxies.into_iter().collect();
        let networks: Vec<Network> = list
            .iter()
            .filter_map(|proxy| match proxy {
                Proxy::Unix => None,
                Proxy::Network(network) => Some(*network),
            })
            .collect();
        Self {
            networks: Networks::new(&networks),
            list,
        }
    }
}

// === impl Proxy ===

impl FromStr for Proxy {
    type Err = ProxyFault;

    fn from_str(text: &str) -> Result<Self, ProxyFault> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let network = text.parse().map_err(|fault| match fault {
            NetworkFault::NotAnAddress => ProxyFault::NotAProxy,
            fault => ProxyFault::BadNetwork(fault),
        })?;
        Ok(Self::Network(network))
    }
}

// === impl AddressHeader ===

impl AddressHeader {
    /// The name of the header, in lower case.
    pub fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::Single(name) => name,
        }
    }
}

impl From<&str> for AddressHeader {
    /// Every other name than those of the two lists is one of a header with a single address.
    fn from(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "x-forwarded-for" => Self::XForwardedFor,
            "forwarded" => Self::Forwarded,
            single => Self::Single(single.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
