//! The links of this thread.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use tokio::runtime::Id;

use super::link::Link;

/// A link of this thread to one server, on one runtime.
struct Lane {
    server: u64,
    runtime: Id,
    link: Weak<Link>,
}

thread_local! {
    // As many as there are servers, so a walk along them is the fastest way to find one.
    static LANES: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

/// The link of this thread to a server, made by `start` if there is none or its driver has ended.
pub(crate) fn link(server: u64, runtime: Id, start: impl FnOnce() -> Arc<Link>) -> Arc<Link> {
    LANES.with_borrow_mut(|lanes| {
        let known = lanes
            .iter()
            .find(|lane| lane.server == server && lane.runtime == runtime)
            .and_then(|lane| lane.link.upgrade());
        if let Some(link) = known
            && !link.is_closed()
        {
            return link;
        }
        lanes.retain(|lane| lane.link.upgrade().is_some_and(|link| !link.is_closed()));
        let link = start();
        lanes.push(Lane {
            server,
            runtime,
            link: Arc::downgrade(&link),
        });
        link
    })
}
