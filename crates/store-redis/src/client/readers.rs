//! All that read what servers say of themselves and of each other, for whoever looks for a reply that one of them
//! cannot bear.

use super::wire::Reply;
use super::{Address, cluster, fault::ServerFault, info, sentinel};

/// Has each of them read a reply.
pub(crate) fn read(reply: &Reply) {
    let _ = info::read(reply);
    let _ = sentinel::master(reply);
    cluster::read_slots(reply, &Address::tcp("asked", 1));
    if let Some(text) = reply.error() {
        let _ = ServerFault::of_text(text).redirection();
    }
}
