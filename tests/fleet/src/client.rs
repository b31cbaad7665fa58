//! A caller's connections to one node: HTTP, and gRPC where a scenario wants it.

use crate::grpc::GrpcConnection;
use crate::http::Connection;
use crate::node::Addresses;
use crate::plan::{self, PlannedRequest};
use crate::record::{Answer, read_answers};
use crate::scenario::{Interface, Scenario};

/// A caller; connects when it is needed.
#[derive(Debug, Default)]
pub struct Client {
    http: Connection,
    grpc: Option<GrpcConnection>,
}

// === impl Client ===

impl Client {
    /// Connects by HTTP ahead of the first request.
    pub fn open(&mut self, addresses: Addresses) {
        let _ = self.http.open(addresses.http);
    }

    /// Sends a request. Returns the answer to each of its checks, if they came.
    pub fn check(
        &mut self,
        addresses: Addresses,
        scenario: &Scenario,
        request: &PlannedRequest,
    ) -> Option<Vec<Answer>> {
        if scenario.by != Interface::Http {
            if self.grpc.is_none() {
                self.grpc = GrpcConnection::new().ok();
            }
            let grpc = self.grpc.as_mut()?;
            let answer = grpc.check(addresses.grpc, scenario, request).ok()?;
            return Some(vec![answer]);
        }
        let body = plan::body(scenario, request);
        let response = self.http.post(addresses.http, "/v1/check", &body).ok()?;
        let is_answer = matches!(response.status, 200 | 429);
        is_answer.then(|| read_answers(&response.body, request.batch))?
    }
}
