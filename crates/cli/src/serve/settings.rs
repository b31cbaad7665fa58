//! The settings as the parts of a server take them.

use std::num::{NonZeroU32, NonZeroUsize};

use tidegate_limiter::{GlobalShadow, LimiterConfig, NearRatio};
use tidegate_observe::{
    DecisionConfig, KeyLogging, MetricNames, ObserveConfig, RefusalLog, Sampling, TopConfig,
};
use tidegate_server::{
    AdminConfig, AdminReach, AdminReads, AdminToken, CoreCount, DrainConfig, GrpcConfig,
    HttpConfig, ListenConfig, ServerConfig, TlsConfig,
};

use crate::config::{Address, Config, Count, Listener, Loaded, Tls};

/// What the server is told.
pub(super) fn server(config: &Config) -> ServerConfig {
    let listen = |listener| listen(config, listener).into_iter().collect();
    ServerConfig {
        gateway: if config.has_gateway() {
            gateway_listener(config)
        } else {
            Vec::new()
        },
        gateway_bounds: config.gateway.bounds.clone(),
        http: listen(&config.listeners.http),
        grpc: listen(&config.listeners.grpc),
        admin: listen(&config.listeners.admin),
        metrics: listen(&config.listeners.metrics),
        http_bounds: http_bounds(config),
        grpc_bounds: grpc_bounds(config),
        answers: config.answers.clone(),
        authorize: config.authorize.clone(),
        cores: cores(config),
        drain: DrainConfig {
            delay: config.drain.delay,
            grace: config.drain.grace,
        },
    }
}

/// How many threads answer.
pub(super) fn cores(config: &Config) -> CoreCount {
    let threads = config.threads;
    let threads = threads.and_then(|threads| NonZeroUsize::new(threads.get()));
    threads.map_or_else(CoreCount::default, CoreCount)
}

/// What the limiter is told.
pub(super) fn limiter(config: &Config) -> LimiterConfig {
    LimiterConfig {
        charging: config.charging,
        consistency: config.store.sharing.consistency,
        near: NearRatio::from_millionths(config.near_ratio.millionths()),
        looks: config.looks_at_limit,
        shadow: if config.shadow {
            GlobalShadow::On
        } else {
            GlobalShadow::Off
        },
    }
}

/// What is observed.
pub(super) fn observing(loaded: &Loaded) -> ObserveConfig {
    let config = &loaded.config;
    let observing = &config.observing;
    let keys_per_rule = observing.top_keys.get();
    ObserveConfig {
        max_rules: observing.metrics.max_rules.get(),
        names: if observing.metrics.reference_names {
            MetricNames::WithReference
        } else {
            MetricNames::Own
        },
        top: (keys_per_rule > 0).then(|| TopConfig {
            keys_per_rule,
            ..TopConfig::default()
        }),
        refusals: refusals(config),
        decisions: Some(DecisionConfig {
            capacity: observing.decisions.get(),
            sample_one_in: NonZeroU32::new(observing.decision_sample.0),
        }),
        traces: loaded.traces.clone(),
    }
}

/// Who may ask what over the admin listener.
pub(super) fn admin(config: &Config, token: Option<AdminToken>) -> AdminConfig {
    let listener = listen(config, &config.listeners.admin);
    AdminConfig {
        token,
        reads: if config.admin.protect_reads {
            AdminReads::WithToken
        } else {
            AdminReads::Open
        },
        reach: listener.map_or_else(AdminReach::default, |it| AdminReach::of(&it.address)),
        ..AdminConfig::default()
    }
}

fn refusals(config: &Config) -> RefusalLog {
    let log = &config.observing.log;
    let share = Sampling::from_millionths(log.refusals.millionths());
    if share == Sampling::NONE {
        return RefusalLog::Off;
    }
    RefusalLog::Sampled {
        share,
        keys: if log.keys {
            KeyLogging::Shown
        } else {
            KeyLogging::Hidden
        },
    }
}

fn listen(config: &Config, listener: &Listener) -> Option<ListenConfig> {
    let address = match &listener.address {
        Address::Off => return None,
        Address::Tcp(address) => tidegate_server::Address::Tcp(*address),
        Address::Unix(path) => tidegate_server::Address::Unix(path.clone()),
    };
    Some(ListenConfig {
        socket_mode: listener.socket_mode.map(|mode| mode.0),
        tls: listener.tls.as_ref().map(tls),
        max_connections: config.limits.connections.get(),
        max_connections_per_address: config.limits.connections_per_address.map(Count::get),
        exempt_peers: config.limits.exempt_peers.clone(),
        ..ListenConfig::new(address)
    })
}

/// The gateway has clients, not programs, so its connections have a bound of their own.
fn gateway_listener(config: &Config) -> Vec<ListenConfig> {
    let listener = listen(config, &config.listeners.gateway);
    let bounds = &config.gateway.bounds;
    let bounded = listener.map(|listener| ListenConfig {
        max_connections: bounds.max_connections,
        max_connections_per_address: bounds.max_connections_per_address,
        ..listener
    });
    bounded.into_iter().collect()
}

fn tls(tls: &Tls) -> TlsConfig {
    TlsConfig {
        client_ca: tls.client_ca.clone(),
        client_names: tls.client_san.clone(),
        ..TlsConfig::new(&tls.cert, &tls.key)
    }
}

fn http_bounds(config: &Config) -> HttpConfig {
    let limits = &config.limits;
    HttpConfig {
        max_head_bytes: limits.head_bytes.0,
        max_body_bytes: limits.body_bytes.0,
        head_timeout: limits.head_timeout,
        body_timeout: limits.body_timeout,
        write_timeout: limits.write_timeout,
    }
}

fn grpc_bounds(config: &Config) -> GrpcConfig {
    let limits = &config.limits;
    let bytes = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    GrpcConfig {
        max_message_bytes: bytes(limits.message_bytes.0),
        max_header_bytes: bytes(limits.head_bytes.0),
        call_timeout: limits.body_timeout,
        write_timeout: limits.write_timeout,
        idle_timeout: limits.grpc.idle_timeout,
        keepalive_interval: limits.grpc.keepalive_interval,
        max_memory_bytes: limits.grpc.grpc_memory.0,
        max_age: limits.grpc.connection_age,
        age_grace: limits.grpc.connection_age_grace,
        max_concurrent_calls: limits.grpc.concurrent_calls.0,
        ..GrpcConfig::default()
    }
}
