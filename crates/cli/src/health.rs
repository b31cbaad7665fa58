//! `tidegate health`: asks a running server how it is, for images that have no other program to ask with.

use std::process::ExitCode;

use crate::args::HealthArgs;
use crate::config::{self, Address, Config, Listener};
use crate::failure::Failure;
use crate::{plain_get, terminal};

/// Asks the server that the settings describe.
pub(crate) fn run(args: &HealthArgs) -> Result<ExitCode, Failure> {
    let loaded = config::load(&args.settings())?;
    let address = plain_listener(&loaded.config).ok_or(Failure::NobodyToAsk)?;
    let response = plain_get::get(address, "/healthcheck", None)
        .map_err(|reason| unwell(address, reason.to_string()))?;
    let body = response.body;
    match response.status {
        Some(200) => {
            terminal::print(&format!("{body}\n"));
            Ok(ExitCode::SUCCESS)
        }
        Some(status) => Err(unwell(address, format!("it answers {status} {body}"))),
        None => Err(unwell(address, "it does not speak HTTP".to_owned())),
    }
}

/// A listener that can be asked without a certificate.
fn plain_listener(config: &Config) -> Option<&Address> {
    let is_plain =
        |listener: &&Listener| listener.tls.is_none() && listener.address != Address::Off;
    let listeners = [&config.listeners.http, &config.listeners.admin];
    let plain = listeners.into_iter().find(is_plain)?;
    Some(&plain.address)
}

fn unwell(address: &Address, reason: String) -> Failure {
    Failure::Unwell {
        address: address.to_string(),
        reason,
    }
}
