//! Opens all listeners of a server, or says everything that is in the way.

use std::io;
use std::sync::Arc;

use crate::listen::Listener;
use crate::tls::{Tls, TlsError};
use crate::{Address, Certificates, Front, ListenConfig, ServerConfig};

/// Listeners that cannot be had, all of them.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(faults))]
pub struct BindError {
    /// What is in the way, at least one thing.
    pub faults: Vec<BindFault>,
}

/// A listener that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BindFault {
    /// An address that cannot be had.
    #[error("cannot listen on {address}: {reason}")]
    Address {
        /// What it is for.
        front: Front,
        /// The address.
        address: Address,
        /// What the system says.
        reason: io::Error,
    },
    /// Files that are no good for TLS.
    #[error("cannot use TLS on {address}: {reason}")]
    Tls {
        /// What it is for.
        front: Front,
        /// The address.
        address: Address,
        /// What is wrong with them.
        reason: Box<TlsError>,
    },
}

/// Opens every listener.
pub(super) fn open(config: &ServerConfig) -> Result<(Vec<Listener>, Certificates), BindError> {
    let gateway = config.gateway.iter().map(|listen| (Front::Gateway, listen));
    let http = config.http.iter().map(|listen| (Front::Http, listen));
    let grpc = config.grpc.iter().map(|listen| (Front::Grpc, listen));
    let admin = config.admin.iter().map(|listen| (Front::Admin, listen));
    let metrics = config.metrics.iter().map(|listen| (Front::Metrics, listen));
    let (mut listeners, mut certificates, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    let all = gateway.chain(http).chain(grpc).chain(admin).chain(metrics);
    for (front, config) in all {
        match open_one(front, config) {
            Ok((listener, tls)) => {
                listeners.push(listener);
                certificates.extend(tls);
            }
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        Ok((listeners, Certificates::new(certificates)))
    } else {
        Err(BindError { faults })
    }
}

fn open_one(
    front: Front,
    config: &ListenConfig,
) -> Result<(Listener, Option<Arc<Tls>>), BindFault> {
    let tls = match &config.tls {
        None => None,
        Some(files) => Some(Arc::new(Tls::load(front, files).map_err(|reason| {
            BindFault::Tls {
                front,
                address: config.address.clone(),
                reason: Box::new(reason),
            }
        })?)),
    };
    let listener =
        Listener::bind(front, config, tls.clone()).map_err(|reason| BindFault::Address {
            front,
            address: config.address.clone(),
            reason,
        })?;
    Ok((listener, tls))
}

fn lines(faults: &[BindFault]) -> String {
    let lines: Vec<String> = faults.iter().map(BindFault::to_string).collect();
    lines.join("\n")
}
