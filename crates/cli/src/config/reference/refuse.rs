//! What the reference's variables ask for and cannot have, so that the server does not start.

use tidegate_rules::document::{Code, Finding, Findings};

use super::super::Config;
use super::super::raw::Origin;
use super::super::reader::{Known, KnownKind};
use super::super::value::Value as _;
use super::redis::RedisType;
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
            if !is_said(known, "store.engine") {
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
        let Some(Variable { value, span }) = self.set.get("REDIS_TYPE") else {
            return;
        };
        if RedisType::of(value).is_none() {
            let message = format!("`REDIS_TYPE` takes a type of Redis, not `{value}`");
            let fault = Finding::error(Code::BadValue, *span, message);
            findings.push(fault.hint("write SINGLE, SENTINEL or CLUSTER"));
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

/// Whether anybody set a setting.
fn is_said(known: &[Known], path: &str) -> bool {
    let found = known.iter().find(|one| one.path == path);
    found.is_some_and(|one| match &one.kind {
        KnownKind::Setting(setting) => setting.origin != Origin::Default,
        KnownKind::Block { .. } => false,
    })
}
