//! What the reference's variables ask for and cannot have, so that the server does not start.

use tidegate_rules::document::{Code, Finding, Findings};

use super::super::Config;
use super::super::raw::Origin;
use super::super::reader::{Known, origin_of};
use super::super::value::Value as _;
use super::redis::{ENGINE, RedisType, Socket};
use super::{Reason, Reference, StandIn, Variable};

/// Names that are on or off, where that decides more than one setting of ours.
const SWITCHES: [&str; 6] = [
    "GRPC_SERVER_USE_TLS",
    "LIMIT_RESPONSE_HEADERS_ENABLED",
    "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
    "QUOTA_MODE",
    "TRACING_ENABLED",
    "REDIS_TLS",
];

/// Names that say where counters are shared, but not in Redis.
const SHARED_STORES: [&str; 2] = ["MEMCACHE_HOST_PORT", "MEMCACHE_SRV"];

// === impl Reference ===

impl Reference {
    /// Refuses what would quietly do less than before: switches that are neither on nor off, TLS without
    /// a certificate, counters that are no longer shared, unless the store says where they are, and rules
    /// that never come.
    pub(crate) fn refuse(&self, config: &Config, known: &[Known], findings: &mut Findings) {
        self.refuse_half_switches(findings);
        self.refuse_tls_without_certificate(config, findings);
        if self.stand_in() == StandIn::Yes {
            self.refuse_xds(findings);
            self.refuse_unknown_redis(findings);
            self.refuse_tls_over_a_socket(known, findings);
            if origin_of(known, ENGINE) == Some(&Origin::Default) {
                self.refuse_shared_stores(findings);
            }
        }
    }

    fn refuse_xds(&self, findings: &mut Findings) {
        if let Some(variable) = self.not("CONFIG_TYPE", "FILE") {
            findings.push(
                Finding::error(
                    Code::NotAvailableYet,
                    variable.span,
                    "rules come from files only, not over xDS",
                )
                .hint(Reason::Xds.instead()),
            );
        }
    }

    fn refuse_unknown_redis(&self, findings: &mut Findings) {
        let is_type: fn(&str) -> bool = |word| RedisType::of(word).is_some();
        let is_socket: fn(&str) -> bool = |word| Socket::of(word).is_some();
        let words = [
            ("REDIS_TYPE", is_type, "write SINGLE, SENTINEL or CLUSTER"),
            ("REDIS_SOCKET_TYPE", is_socket, "write tcp or unix"),
        ];
        for (name, is_known, hint) in words {
            let Some(Variable { value, span }) = self.set.get(name) else {
                continue;
            };
            if !is_known(value) {
                let message = format!("`{name}` takes a way to reach Redis, not `{value}`");
                findings.push(Finding::error(Code::BadValue, *span, message).hint(hint));
            }
        }
    }

    /// A socket has no TLS here, and to leave it out would be to speak in plain text.
    fn refuse_tls_over_a_socket(&self, known: &[Known], findings: &mut Findings) {
        let tls = "REDIS_TLS";
        let is_plain = self.is_in_url(tls, known) && self.is_by_socket();
        if let Some(switch) = self.set.get(tls).filter(|_| self.is_on(tls) && is_plain) {
            let message = format!("`{tls}` is on, but REDIS_URL is a socket of this machine");
            let fault = Finding::error(Code::NotApplicable, switch.span, message);
            findings
                .push(fault.hint("leave it out, or name HOST:PORT and set REDIS_SOCKET_TYPE=tcp"));
        }
    }

    fn refuse_shared_stores(&self, findings: &mut Findings) {
        let memcache = self
            .not("BACKEND_TYPE", "redis")
            .map(|variable| ("BACKEND_TYPE", variable));
        let shared = SHARED_STORES
            .into_iter()
            .filter_map(|name| Some((name, self.set.get(name)?)));
        for (name, variable) in shared.chain(memcache) {
            let message = format!(
                "`{name}` asks for counters that nodes share in memcached, and they can be shared in Redis \
                 only"
            );
            findings.push(
                Finding::error(Code::NotApplicable, variable.span, message).hint(
                    "name a Redis with REDIS_URL or TIDEGATE_STORE\n\
                     with one node nothing is lost: say so with TIDEGATE_STORE=memory",
                ),
            );
        }
    }

    fn refuse_half_switches(&self, findings: &mut Findings) {
        for name in SWITCHES {
            let Some(Variable { value, span }) = self.set.get(name) else {
                continue;
            };
            if bool::parse(value).is_err() {
                let message = format!("`{name}` takes true or false, not `{value}`");
                let fault = Finding::error(Code::BadValue, *span, message);
                findings.push(fault.hint("write `true` or `false`"));
            }
        }
    }

    fn refuse_tls_without_certificate(&self, config: &Config, findings: &mut Findings) {
        let tls = "GRPC_SERVER_USE_TLS";
        let has_tls = config.listeners.grpc.tls.is_some();
        if let Some(switch) = self.set.get(tls).filter(|_| self.is_on(tls) && !has_tls) {
            let message = format!("`{tls}` is on, but there is no certificate with its key");
            let fault = Finding::error(Code::NotApplicable, switch.span, message);
            findings.push(fault.hint("set GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"));
        }
    }
}
