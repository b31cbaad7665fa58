//! The servers of a deployment, and which of them to ask.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::ServerReport;

use super::cluster::{Cluster, Doubt};
use super::config::{ClientConfig, Deployment};
use super::fault::Redirection;
use super::link::unavailable;
use super::sentinel::Sentinels;
use super::server::{Manners, Place, Server};
use super::session::SessionError;
use super::slot::slot_of;
use super::{Address, Route};

/// The servers of a deployment.
#[derive(Debug)]
pub(super) enum Topology {
    /// One, wherever it is.
    One(Arc<Server>),
    /// A Cluster.
    Many(Arc<Cluster>),
}

// === impl Topology ===

impl Topology {
    pub(super) fn new(config: &ClientConfig, manners: Arc<Manners>) -> Self {
        let place = match &config.deployment {
            Deployment::Single(address) => Place::Alone(address.clone()),
            Deployment::Sentinel {
                sentinels,
                master,
                credentials,
            } => Place::Sentinels(Sentinels::new(
                sentinels.clone(),
                master.clone(),
                credentials.clone(),
            )),
            Deployment::Cluster { seeds } => {
                return Self::Many(Cluster::new(seeds.clone(), manners));
            }
        };
        Self::One(Server::new(place, manners))
    }

    /// All servers that are known.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        match self {
            Self::One(server) => vec![Arc::clone(server)],
            Self::Many(cluster) => cluster.servers(),
        }
    }

    /// Whom to ask. A Cluster may have to be learnt first.
    pub(super) async fn find(
        &self,
        route: Route<'_>,
        patience: Duration,
    ) -> Result<Arc<Server>, StoreError> {
        let cluster = match self {
            Self::One(server) => return Ok(Arc::clone(server)),
            Self::Many(cluster) => cluster,
        };
        if let Some(server) = in_cluster(cluster, route) {
            return Ok(server);
        }
        cluster.learn(patience).await?;
        in_cluster(cluster, route).ok_or_else(|| {
            cluster.doubt(Doubt::Failing);
            unavailable("no server of the Cluster has this slot")
        })
    }

    /// Who is to be asked instead, after `server` sent us on; `None` for the same server, a little later.
    pub(super) fn follow(
        &self,
        server: &Server,
        redirection: &Redirection,
    ) -> Result<Option<Arc<Server>>, StoreError> {
        let Self::Many(cluster) = self else {
            return Err(SessionError::InCluster.into());
        };
        if redirection.is_lasting() {
            cluster.doubt(Doubt::Moved);
        }
        let Some((host, port)) = redirection.place() else {
            return Ok(None);
        };
        let asked = server.address();
        let own = asked.as_ref().and_then(Address::host);
        let Some(host) = Address::named(host).or(own) else {
            return Err(unavailable("the Cluster sent a call on to nowhere"));
        };
        let Some(other) = cluster.stranger_at(Address::tcp(host, port)) else {
            cluster.doubt(Doubt::Moved);
            return Err(unavailable(
                "the Cluster sends calls to more servers than have slots",
            ));
        };
        Ok(Some(other))
    }

    /// How each server fares.
    pub(super) fn report(&self) -> Vec<ServerReport> {
        match self {
            Self::One(server) => vec![server.report()],
            Self::Many(cluster) => cluster.report(),
        }
    }

    /// Whether every server is asked.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::One(server) => server.is_asked(),
            Self::Many(cluster) => cluster.is_whole(),
        }
    }

    /// Takes note that a server failed: in a Cluster another may have taken over.
    pub(super) fn doubt(&self) {
        if let Self::Many(cluster) = self {
            cluster.doubt(Doubt::Failing);
        }
    }

    /// Takes note that nobody is there, as somebody found out who says so.
    pub(super) fn give_up(&self, reason: &dyn fmt::Display) {
        match self {
            Self::One(server) => server.give_up(reason),
            Self::Many(cluster) => cluster.give_up(reason),
        }
    }

    /// Ends all connections.
    pub(super) fn close(&self) {
        match self {
            Self::One(server) => server.close(),
            Self::Many(cluster) => cluster.close(),
        }
    }
}

fn in_cluster(cluster: &Cluster, route: Route<'_>) -> Option<Arc<Server>> {
    match route {
        Route::Any => cluster.any(),
        Route::Key(key) => cluster.server_of(slot_of(key)),
        Route::Server(number) => cluster.servers().get(number).map(Arc::clone),
    }
}
