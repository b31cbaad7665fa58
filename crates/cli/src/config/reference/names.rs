//! Every name that the reference knows, and what becomes of it.

use Fate::{Always, Makes, MakesIfStandIn, OnlyIf, Sets, Unsupported};
use Reason::{
    DotFiles, InMemory, Memcached, Metadata, NothingExpires, OtlpOverHttp, PrometheusPage, Redis,
    StartsWithRules, StatsAreRead, Statsd, Xds,
};

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It sets this setting of ours, which takes the same values.
    Sets(&'static str),
    /// It has a part in this setting of ours.
    Makes(&'static str),
    /// Likewise, but only where we stand in for the reference, for other programs set it too.
    MakesIfStandIn(&'static str),
    /// It makes no difference: what either of its values does is done.
    Always,
    /// It is so already if it says this; anything else is not supported.
    OnlyIf(&'static str, Reason),
    /// It is not supported.
    Unsupported(Reason),
}

/// Why names are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Redis,
    Memcached,
    Xds,
    Metadata,
    Statsd,
    StatsAreRead,
    PrometheusPage,
    InMemory,
    NothingExpires,
    StartsWithRules,
    DotFiles,
    OtlpOverHttp,
    TooGeneral,
}

/// What the names of mogrifiers begin with; a number and a word follow.
pub(super) const MOGRIFIER: &str = "DOG_STATSD_MOGRIFIER_";

/// Where OpenTelemetry's exporters send; the reference leaves this to their library.
pub(super) const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The same for traces alone, with the path of traces in it.
pub(super) const OTLP_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// The names of the reference's `settings.go` in its order, and the family that its statsd sink reads.
pub(crate) const NAMES: &[(&str, Fate)] = &[
    ("HOST", MakesIfStandIn("listeners.http")),
    ("PORT", Makes("listeners.http")),
    ("DEBUG_HOST", Makes("listeners.admin")),
    ("DEBUG_PORT", Makes("listeners.admin")),
    ("GRPC_UDS", Makes("listeners.grpc")),
    ("GRPC_HOST", Makes("listeners.grpc")),
    ("GRPC_PORT", Makes("listeners.grpc")),
    ("GRPC_MAX_CONNECTION_AGE", Sets("limits.connection_age")),
    (
        "GRPC_MAX_CONNECTION_AGE_GRACE",
        Sets("limits.connection_age_grace"),
    ),
    ("GRPC_SERVER_USE_TLS", Makes("listeners.grpc.tls")),
    ("GRPC_SERVER_TLS_CERT", Makes("listeners.grpc.tls")),
    ("GRPC_SERVER_TLS_KEY", Makes("listeners.grpc.tls")),
    ("GRPC_CLIENT_TLS_CACERT", Makes("listeners.grpc.tls")),
    ("GRPC_CLIENT_TLS_SAN", Makes("listeners.grpc.tls")),
    ("LOG_LEVEL", Sets("observing.log.level")),
    ("LOG_FORMAT", Sets("observing.log.format")),
    ("CONFIG_TYPE", OnlyIf("FILE", Xds)),
    (
        "FORCE_START_WITHOUT_INITIAL_CONFIG",
        OnlyIf("false", StartsWithRules),
    ),
    ("CONFIG_GRPC_XDS_NODE_ID", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_NODE_METADATA", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_SERVER_URL", Unsupported(Xds)),
    (
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
        Unsupported(Xds),
    ),
    (
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
        Unsupported(Xds),
    ),
    ("CONFIG_GRPC_XDS_SERVER_USE_TLS", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", Unsupported(Xds)),
    ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", Unsupported(Xds)),
    ("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", Unsupported(Xds)),
    ("XDS_CLIENT_BACKOFF_MAX_INTERVAL", Unsupported(Xds)),
    ("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", Unsupported(Xds)),
    ("XDS_CLIENT_BACKOFF_JITTER", Unsupported(Xds)),
    ("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", Unsupported(Xds)),
    ("USE_DOG_STATSD", OnlyIf("false", Statsd)),
    ("USE_DOG_STATSD_MOGRIFIERS", Unsupported(Statsd)),
    ("USE_STATSD", OnlyIf("false", Statsd)),
    ("STATSD_HOST", Unsupported(Statsd)),
    ("STATSD_PORT", Unsupported(Statsd)),
    ("EXTRA_TAGS", Unsupported(Statsd)),
    ("STATS_FLUSH_INTERVAL", Unsupported(Statsd)),
    ("DISABLE_STATS", OnlyIf("true", StatsAreRead)),
    ("USE_PROMETHEUS", Sets("observing.metrics.reference_names")),
    ("PROMETHEUS_ADDR", Makes("listeners.metrics")),
    ("PROMETHEUS_PATH", OnlyIf("/metrics", PrometheusPage)),
    ("PROMETHEUS_MAPPER_YAML", Unsupported(PrometheusPage)),
    (
        "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
        Unsupported(PrometheusPage),
    ),
    ("RUNTIME_ROOT", Makes("rules.paths")),
    ("RUNTIME_SUBDIRECTORY", Makes("rules.paths")),
    ("RUNTIME_APPDIRECTORY", Makes("rules.paths")),
    ("RUNTIME_IGNOREDOTFILES", OnlyIf("true", DotFiles)),
    ("RUNTIME_WATCH_ROOT", Always),
    ("EXPIRATION_JITTER_MAX_SECONDS", Unsupported(NothingExpires)),
    ("LOCAL_CACHE_SIZE_IN_BYTES", Unsupported(InMemory)),
    ("NEAR_LIMIT_RATIO", Sets("near_ratio")),
    ("CACHE_KEY_PREFIX", Unsupported(InMemory)),
    ("BACKEND_TYPE", OnlyIf("redis", Memcached)),
    ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", Makes("charging")),
    ("LIMIT_RESPONSE_HEADERS_ENABLED", Makes("answers.headers")),
    ("LIMIT_LIMIT_HEADER", Sets("answers.names.limit")),
    ("LIMIT_REMAINING_HEADER", Sets("answers.names.remaining")),
    ("LIMIT_RESET_HEADER", Sets("answers.names.reset")),
    (
        "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
        OnlyIf("true", StartsWithRules),
    ),
    ("REDIS_SOCKET_TYPE", Unsupported(Redis)),
    ("REDIS_TYPE", Unsupported(Redis)),
    ("REDIS_URL", Unsupported(Redis)),
    ("REDIS_POOL_SIZE", Unsupported(Redis)),
    ("REDIS_AUTH", Unsupported(Redis)),
    ("REDIS_TLS", Unsupported(Redis)),
    ("REDIS_TLS_CLIENT_CERT", Unsupported(Redis)),
    ("REDIS_TLS_CLIENT_KEY", Unsupported(Redis)),
    ("REDIS_TLS_CACERT", Unsupported(Redis)),
    ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", Unsupported(Redis)),
    ("REDIS_PIPELINE_WINDOW", Unsupported(Redis)),
    ("REDIS_PIPELINE_LIMIT", Unsupported(Redis)),
    ("REDIS_CLUSTER_PIPELINE_PARALLELISM", Unsupported(Redis)),
    ("REDIS_PERSECOND", Unsupported(Redis)),
    ("REDIS_PERSECOND_SOCKET_TYPE", Unsupported(Redis)),
    ("REDIS_PERSECOND_TYPE", Unsupported(Redis)),
    ("REDIS_PERSECOND_URL", Unsupported(Redis)),
    ("REDIS_PERSECOND_POOL_SIZE", Unsupported(Redis)),
    ("REDIS_PERSECOND_AUTH", Unsupported(Redis)),
    ("REDIS_PERSECOND_TLS", Unsupported(Redis)),
    ("REDIS_SENTINEL_AUTH", Unsupported(Redis)),
    ("REDIS_PERSECOND_SENTINEL_AUTH", Unsupported(Redis)),
    ("REDIS_PERSECOND_PIPELINE_WINDOW", Unsupported(Redis)),
    ("REDIS_PERSECOND_PIPELINE_LIMIT", Unsupported(Redis)),
    (
        "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
        Unsupported(Redis),
    ),
    ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", Unsupported(Redis)),
    ("REDIS_TIMEOUT", Unsupported(Redis)),
    ("REDIS_PERSECOND_TIMEOUT", Unsupported(Redis)),
    ("REDIS_POOL_ON_EMPTY_BEHAVIOR", Unsupported(Redis)),
    ("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", Unsupported(Redis)),
    ("REDIS_STARTUP_INITIAL_INTERVAL", Unsupported(Redis)),
    ("REDIS_STARTUP_MAX_INTERVAL", Unsupported(Redis)),
    ("REDIS_STARTUP_MAX_ELAPSED_TIME", Unsupported(Redis)),
    ("MEMCACHE_HOST_PORT", Unsupported(Memcached)),
    ("MEMCACHE_MAX_IDLE_CONNS", Unsupported(Memcached)),
    ("MEMCACHE_SRV", Unsupported(Memcached)),
    ("MEMCACHE_SRV_REFRESH", Unsupported(Memcached)),
    ("MEMCACHE_TLS", Unsupported(Memcached)),
    ("MEMCACHE_TLS_CLIENT_CERT", Unsupported(Memcached)),
    ("MEMCACHE_TLS_CLIENT_KEY", Unsupported(Memcached)),
    ("MEMCACHE_TLS_CACERT", Unsupported(Memcached)),
    (
        "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
        Unsupported(Memcached),
    ),
    ("SHADOW_MODE", Sets("shadow")),
    ("QUOTA_MODE", Makes("rules.refusals")),
    ("RESPONSE_DYNAMIC_METADATA", OnlyIf("true", Metadata)),
    ("MERGE_DOMAIN_CONFIG", Sets("rules.merge_domains")),
    ("TRACING_ENABLED", Makes("observing.traces.endpoint")),
    (
        "TRACING_SERVICE_NAME",
        Sets("observing.traces.service_name"),
    ),
    (
        "TRACING_SERVICE_NAMESPACE",
        Sets("observing.traces.service_namespace"),
    ),
    (
        "TRACING_SERVICE_INSTANCE_ID",
        Sets("observing.traces.service_instance_id"),
    ),
    ("TRACING_EXPORTER_PROTOCOL", OnlyIf("http", OtlpOverHttp)),
    ("TRACING_SAMPLING_RATE", Sets("observing.traces.sample")),
    (MOGRIFIER, Unsupported(Statsd)),
];

// === impl Reason ===

impl Reason {
    /// Why, as the end of a sentence that begins with the names.
    pub(crate) const fn because(self) -> &'static str {
        match self {
            Redis => "counters are kept in the memory of this node until there is a store in Redis",
            Memcached => "counters are kept in the memory of this node",
            Xds => "rules come from files",
            Metadata => "which rule decided is always told, in dynamic_metadata",
            Statsd => "metrics are not pushed",
            StatsAreRead => "metrics cost nothing until they are read",
            PrometheusPage => {
                "metrics stand at /metrics of the admin listener, in units and labels of their own"
            }
            InMemory => "the store is this process's own memory",
            NothingExpires => "counters need no expiry",
            StartsWithRules => "a server without good rules does not start",
            DotFiles => "files whose names begin with a dot are never rules",
            OtlpOverHttp => "spans are sent over HTTP",
            Self::TooGeneral => "other programs set it too, so it counts only beside RUNTIME_ROOT",
        }
    }

    /// What to do instead.
    pub(crate) const fn instead(self) -> &'static str {
        match self {
            Redis => "run one node, or divide the limits by their number",
            Memcached => {
                "run one node, or divide the limits by their number; a memcached store is not planned"
            }
            Xds => {
                "mount the rules as files, for example from a ConfigMap; changes are taken over at once"
            }
            Metadata => "read what you need of it, and leave the variable out",
            Statsd => "scrape /metrics of the admin listener",
            StatsAreRead | InMemory | NothingExpires => "leave it out",
            PrometheusPage => {
                "scrape port 6070, and set observing.metrics.reference_names for the old names"
            }
            StartsWithRules => "see to it that the rules are there first",
            DotFiles => "rename the file",
            OtlpOverHttp => "point OTEL_EXPORTER_OTLP_ENDPOINT at the HTTP port, 4318",
            Self::TooGeneral => "use TIDEGATE_LISTENERS_HTTP",
        }
    }
}
