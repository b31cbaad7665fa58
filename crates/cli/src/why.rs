//! `tidegate why`: asks a running server for the reasons of one of its decisions.

use std::process::ExitCode;

use serde_json::Value;
use tidegate_observe::DecisionId;
use tidegate_server::AdminToken;

use crate::args::WhyArgs;
use crate::config::{self, Address};
use crate::failure::Failure;
use crate::{plain_get, terminal};

/// Asks the server that the settings describe, and prints the reasons.
pub(crate) fn run(args: &WhyArgs) -> Result<ExitCode, Failure> {
    let id: DecisionId = args.id.parse().map_err(|reason| Failure::BadDecisionId {
        id: args.id.clone(),
        reason,
    })?;
    let loaded = config::load(&args.settings())?;
    let listener = &loaded.config.listeners.admin;
    if listener.tls.is_some() || listener.address == Address::Off {
        return Err(Failure::NoPlainAdmin);
    }
    let token = loaded.config.admin.token()?;
    let authorization = token.as_ref().map(AdminToken::authorization);
    let path = format!("/api/v1/decisions/{id}");
    let address = &listener.address;
    let unanswered = |reason: String| Failure::Unanswered {
        address: address.to_string(),
        reason,
    };
    let response = plain_get::get(address, &path, authorization.as_deref())
        .map_err(|reason| unanswered(reason.to_string()))?;
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    match (response.status, &body["text"], &body["detail"]) {
        (Some(200), Value::String(text), _) => {
            terminal::print(text);
            Ok(ExitCode::SUCCESS)
        }
        (Some(404), _, Value::String(detail)) => Err(Failure::UnknownDecision(detail.clone())),
        (Some(_), _, Value::String(detail)) => Err(unanswered(detail.clone())),
        (Some(status), ..) => Err(unanswered(format!("it answers {status}"))),
        (None, ..) => Err(unanswered("it does not speak HTTP".to_owned())),
    }
}
