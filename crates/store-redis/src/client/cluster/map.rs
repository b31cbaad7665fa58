//! Who has which slot.

use std::collections::HashMap;
use std::sync::Arc;

use crate::client::slot::SLOTS;
use crate::client::wire::{Reply, Value};
use crate::client::{Address, server::Server};

/// The servers, and which of them has which slot.
#[derive(Debug, Default)]
pub(super) struct Map {
    servers: Vec<Arc<Server>>,
    /// For each slot the place of its server, if it has one. Empty until it is learnt.
    slots: Vec<Option<u16>>,
}

/// Slots that one master has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u16,
    last: u16,
    master: Address,
}

/// The most masters that are connected to. Redis recommends Clusters of at most a thousand.
const MAX_MASTERS: usize = 1_000;

// === impl Map ===

impl Map {
    /// Lays out ranges; `server` finds or makes the server at an address.
    pub(super) fn new(ranges: Vec<Range>, server: impl Fn(Address) -> Arc<Server>) -> Self {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut slots = vec![None; usize::from(SLOTS)];
        let mut places: HashMap<Address, usize> = HashMap::new();
        for range in ranges {
            let place = match places.get(&range.master) {
                Some(place) => *place,
                // The slots of further ones are nobody's, and the calls of them fail.
                None if servers.len() >= MAX_MASTERS => continue,
                None => {
                    places.insert(range.master.clone(), servers.len());
                    servers.push(server(range.master));
                    servers.len() - 1
                }
            };
            // There are fewer masters than slots.
            let place = u16::try_from(place).ok();
            slots[usize::from(range.first)..=usize::from(range.last)].fill(place);
        }
        Self { servers, slots }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    pub(super) fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(super) fn server_of(&self, slot: u16) -> Option<&Arc<Server>> {
        let place = self.slots.get(usize::from(slot)).copied()??;
        self.servers.get(usize::from(place))
    }
}

/// The answer to CLUSTER SLOTS. What cannot be understood is left out: its slots are nobody's, and the
/// calls of them fail.
pub(super) fn ranges(reply: &Reply, asked: &Address) -> Vec<Range> {
    let ranges = reply.array().ok().into_iter().flatten();
    // There cannot be more of them than slots.
    ranges
        .take(usize::from(SLOTS))
        .filter_map(|range| self::range(range, asked))
        .collect()
}

/// `[first, last, [host, port, …], replicas…]`
fn range(value: Value<'_>, asked: &Address) -> Option<Range> {
    let mut parts = value.array()?;
    let first = u16::try_from(parts.next()?.integer()?).ok()?;
    let last = u16::try_from(parts.next()?.integer()?).ok()?;
    if first > last || last >= SLOTS {
        return None;
    }
    let mut master = parts.next()?.array()?;
    let host = master.next()?.str();
    let port = u16::try_from(master.next()?.integer()?).ok()?;
    let host = host.and_then(Address::named).or(asked.host())?;
    Some(Range {
        first,
        last,
        master: Address::tcp(host, port),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::client::change_log::ChangeLog;
    use crate::client::config::Changes;
    use crate::client::server::{Manners, Place};
    use crate::client::time::now;
    use crate::client::timeout::TimeoutBounds;

    #[test]
    fn masters_are_read_and_nameless_ones_are_where_they_were_asked() {
        let reply = b"*4\r\n\
            *4\r\n:0\r\n:5\r\n*4\r\n$2\r\nh1\r\n:7000\r\n$2\r\nid\r\n*0\r\n*3\r\n$2\r\nh2\r\n:7001\r\n$1\r\nx\r\n\
            *3\r\n:6\r\n:6\r\n*3\r\n$0\r\n\r\n:7002\r\n$1\r\ny\r\n\
            *3\r\n:7\r\n:8\r\n*3\r\n$-1\r\n:7003\r\n$1\r\nz\r\n\
            *3\r\n:9\r\n:16384\r\n*3\r\n$2\r\nh4\r\n:7004\r\n$1\r\nz\r\n";
        let reply = Reply::parse(reply).expect("it is one reply");
        let range = |first, last, host, port| Range {
            first,
            last,
            master: Address::tcp(host, port),
        };
        assert_eq!(
            ranges(&reply, &Address::tcp("seed", 1)),
            [
                range(0, 5, "h1", 7000),
                range(6, 6, "seed", 7002),
                range(7, 8, "seed", 7003),
            ]
        );
    }

    fn server() -> Arc<Server> {
        let timeout = Duration::from_secs(1);
        let manners = Manners {
            credentials: None,
            database: 0,
            tls: None,
            timeouts: TimeoutBounds {
                min: timeout,
                max: timeout,
            },
            connect_timeout: timeout,
            change_log: ChangeLog::new(now()),
            changes: Changes::Logged,
        };
        let place = Place::Alone(Address::tcp("h", 1));
        Server::new(place, Arc::new(manners))
    }

    #[test]
    fn masters_are_bounded_and_the_slots_of_further_ones_are_nobodys() {
        let most = u16::try_from(MAX_MASTERS).unwrap();
        // Each slot has a master of its own, and then the first one has another slot.
        let range = |slot: u16, port| Range {
            first: slot,
            last: slot,
            master: Address::tcp("h", port),
        };
        let mut ranges: Vec<Range> = (0..2 * most).map(|slot| range(slot, slot)).collect();
        ranges.push(range(2 * most, 0));
        let (server, n_made) = (server(), Cell::new(0));
        let map = Map::new(ranges, |_| {
            n_made.set(n_made.get() + 1);
            Arc::clone(&server)
        });
        assert_eq!(n_made.get(), MAX_MASTERS);
        assert_eq!(map.servers().len(), MAX_MASTERS);
        for slot in 0..=2 * most {
            let is_known = slot < most || slot == 2 * most;
            assert_eq!(map.server_of(slot).is_some(), is_known, "{slot}");
        }
    }
}
