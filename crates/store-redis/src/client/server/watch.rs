//! Follows the master from server to server, as Sentinels replace it.
//!
//! A planned failover leaves the old master writable for a second after the new one was promoted, and what it is
//! charged in that time is lost. So all Sentinels are subscribed to: the one that leads a failover names the replica
//! before it promotes it, and from then on that replica is asked for its role until it is a master. Sentinels are
//! also asked once a second, in case they may not be subscribed to or an event is lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::info;

use super::{Place, Server};
use crate::client::Address;
use crate::client::sentinel::Sentinels;
use crate::client::session::SessionError;
use crate::client::time::{now, pause};
use crate::client::wire::Reply;

/// Lets another task begin if this one ends before its time, with its runtime.
struct Watching(Arc<Server>);

/// An event of a failover.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// This replica will be promoted, or was.
    Promoting(Address),
    /// This server is the master.
    Switched(Address),
}

/// The time between two questions to Sentinels.
const LOOK: Duration = Duration::from_secs(1);

/// The time between two questions to a replica that is about to be promoted, and the longest that it is asked.
const ROLE_INTERVAL: Duration = Duration::from_millis(20);
const LONGEST_PROMOTION: Duration = Duration::from_secs(20);

/// The most Sentinels that are subscribed to.
const MOST_SENTINELS: usize = 16;

/// The events of a failover, as patterns.
const EVENTS: [&str; 5] = [
    "PSUBSCRIBE",
    "+selected-slave",
    "+failover-state-*",
    "+promoted-slave",
    "+switch-master",
];

// === impl Server ===

impl Server {
    /// Watches for another master, unless that is done already or there can be none.
    pub(super) fn watch(self: &Arc<Self>, runtime: &Handle) {
        let can_move = matches!(self.place, Place::Sentinels(_));
        if can_move && !self.is_watched.swap(true, Ordering::AcqRel) {
            runtime.spawn(until_closed(Watching(Arc::clone(self))));
        }
    }

    fn sentinels(&self) -> Option<&Sentinels> {
        match &self.place {
            Place::Sentinels(sentinels) => Some(sentinels),
            Place::Alone(_) | Place::InCluster(_) => None,
        }
    }

    /// Reconnects to the new master, unless that is known.
    fn switch_to(&self, address: &Address) {
        if self.sentinels().is_some_and(|it| it.promote(address)) {
            info!(server = %self, "failover: Sentinels made this server the master; reconnecting");
            for link in &self.links().alive {
                link.renew();
            }
        }
    }

    /// The Sentinels that those of the URL know, besides themselves.
    async fn other_sentinels(&self) -> Vec<Address> {
        let Some(sentinels) = self.sentinels() else {
            return Vec::new();
        };
        for sentinel in sentinels.addresses() {
            let asking = async {
                let mut session = sentinels.open(sentinel, &self.manners).await?;
                let question = ["SENTINEL", "SENTINELS", sentinels.master()];
                session.ask(&question).await
            };
            if let Ok(Ok(reply)) = timeout(self.manners.connect_timeout, asking).await {
                return read_sentinels(&reply);
            }
        }
        Vec::new()
    }

    /// Follows the events of one Sentinel until its connection ends.
    async fn follow(&self, sentinel: &Address) -> Result<(), SessionError> {
        let Some(sentinels) = self.sentinels() else {
            return Ok(());
        };
        let mut session = sentinels.open(sentinel, &self.manners).await?;
        session.ask(&EVENTS).await?;
        loop {
            let reply = session.next().await?;
            match event(&reply, sentinels.master()) {
                Some(Event::Switched(address)) => self.switch_to(&address),
                Some(Event::Promoting(address)) => self.await_promotion(&address).await,
                None => {}
            }
        }
    }

    /// Asks a replica for its role until it is a master, and switches to it then.
    async fn await_promotion(&self, address: &Address) {
        let end = now() + LONGEST_PROMOTION;
        let opening = timeout(self.manners.connect_timeout, self.manners.open(address));
        let Ok(Ok(mut session)) = opening.await else {
            return;
        };
        while self.address().as_ref() != Some(address) && now() < end {
            match timeout(self.manners.connect_timeout, session.is_master()).await {
                Ok(Ok(true)) => return self.switch_to(address),
                Ok(Ok(false)) => pause(ROLE_INTERVAL).await,
                // It may not be asked, or is gone: the last event of the failover will tell.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

async fn until_closed(watching: Watching) {
    let server = &watching.0;
    let mut followed: Vec<Address> = Vec::new();
    let mut following = JoinSet::new();
    while !server.is_closed() {
        let Some(sentinels) = server.sentinels() else {
            return;
        };
        let others = server.other_sentinels().await;
        for sentinel in sentinels.addresses().iter().chain(&others) {
            if followed.len() < MOST_SENTINELS && !followed.contains(sentinel) {
                followed.push(sentinel.clone());
                following.spawn(follow_always(Arc::clone(server), sentinel.clone()));
            }
        }
        pause(LOOK).await;
        if let Some(address) = sentinels.new_master(&server.manners).await {
            server.switch_to(&address);
        }
    }
}

async fn follow_always(server: Arc<Server>, sentinel: Address) {
    loop {
        // One that cannot be followed is tried again, and asked once a second meanwhile.
        let _ = server.follow(&sentinel).await;
        pause(LOOK).await;
    }
}

/// The event that a message of a Sentinel tells of a master, if any.
fn event(reply: &Reply, master: &str) -> Option<Event> {
    let mut message = reply.array().ok()?.skip(2);
    let (channel, payload) = (message.next()?.str()?, message.next()?.str()?);
    let words: Vec<&str> = payload.split(' ').collect();
    let address = |host: &str, port: &str| Some(Address::tcp(host, port.parse().ok()?));
    match words[..] {
        [name, _, _, host, port] if channel == "+switch-master" && name == master => {
            Some(Event::Switched(address(host, port)?))
        }
        ["slave", _, host, port, "@", name, ..] if name == master => {
            Some(Event::Promoting(address(host, port)?))
        }
        _ => None,
    }
}

/// The addresses in a reply to SENTINEL SENTINELS: a list of names and values for each.
fn read_sentinels(reply: &Reply) -> Vec<Address> {
    let read = |sentinel: crate::client::Value<'_>| {
        let fields: Vec<_> = sentinel.array()?.filter_map(|field| field.str()).collect();
        let field = |name| {
            let pairs = fields.chunks_exact(2);
            pairs
                .filter(|pair| pair[0] == name)
                .map(|pair| pair[1])
                .next()
        };
        Some(Address::tcp(field("ip")?, field("port")?.parse().ok()?))
    };
    reply
        .array()
        .into_iter()
        .flatten()
        .filter_map(read)
        .collect()
}

// === impl Watching ===

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(channel: &str, payload: &str) -> Reply {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let parts = ["pmessage", "+*", channel, payload].map(bulk);
        Reply::new(format!("*4\r\n{}", parts.concat()).into())
    }

    #[test]
    fn events_of_a_failover_name_the_new_master() {
        let replica = "slave 10.0.0.2:7 10.0.0.2 7 @ main 10.0.0.1 6";
        let promoting = || Some(Event::Promoting(Address::tcp("10.0.0.2", 7)));
        for (channel, payload, expected) in [
            ("+selected-slave", replica, promoting()),
            ("+failover-state-wait-promotion", replica, promoting()),
            (
                "+switch-master",
                "main 10.0.0.1 6 10.0.0.2 7",
                Some(Event::Switched(Address::tcp("10.0.0.2", 7))),
            ),
            ("+switch-master", "other 10.0.0.1 6 10.0.0.2 7", None),
            (
                "+failover-state-select-slave",
                "master main 10.0.0.1 6",
                None,
            ),
            (
                "+selected-slave",
                "slave x 10.0.0.2 7 @ other 10.0.0.1 6",
                None,
            ),
            (
                "+selected-slave",
                "slave x 10.0.0.2 no @ main 10.0.0.1 6",
                None,
            ),
        ] {
            let reply = message(channel, payload);
            assert_eq!(event(&reply, "main"), expected, "{channel} {payload}");
        }
    }
}
