//! Every name that the reference knows, and what becomes of it.

use Fate::{Always, Makes, OfListener, OfRedis, OnlyIf, Sets, Unsupported};
use Reason::{
    AlwaysVerified, DotFiles, ExpiresByItself, FewConnections, HealthyWithout, Memcached, Metadata,
    OneRedis, OtlpOverHttp, PrometheusPage, RefusalsRemembered, StartsWithRules,
    StartsWithoutRedis, StatsAreRead, Statsd, Timeouts, Xds,
};

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It sets this setting of ours, which takes the same values.
    Sets(&'static str),
    /// It has a part in this setting of ours.
    Makes(&'static str),
    /// Likewise, but only where we stand in for the reference, for other programs set it too.
    OfListener(&'static str),
    /// Likewise about Redis.
    OfRedis(&'static str),
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
    FewConnections,
    OneRedis,
    HealthyWithout,
    StartsWithoutRedis,
    Timeouts,
    AlwaysVerified,
    Memcached,
    Xds,
    Metadata,
    Statsd,
    StatsAreRead,
    PrometheusPage,
    RefusalsRemembered,
    ExpiresByItself,
    StartsWithRules,
    DotFiles,
    OtlpOverHttp,
    HostOfAnother,
    RedisOfAnother,
    NotInUrl,
}

/// What the names of mogrifiers begin with; a number and a word follow.
pub(super) const MOGRIFIER: &str = "DOG_STATSD_MOGRIFIER_";

/// Where OpenTelemetry's exporters send; the reference leaves this to their library.
pub(super) const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The same for traces alone, with the path of traces in it.
pub(super) const OTLP_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// The names of the reference's `settings.go` in its order, and the family that its statsd sink reads.
pub(crate) const NAMES: &[(&str, Fate)] = &[
    ("HOST", OfListener("listeners.http")),
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
    (
        "EXPIRATION_JITTER_MAX_SECONDS",
        Unsupported(ExpiresByItself),
    ),
    ("LOCAL_CACHE_SIZE_IN_BYTES", Unsupported(RefusalsRemembered)),
    ("NEAR_LIMIT_RATIO", Sets("near_ratio")),
    ("CACHE_KEY_PREFIX", Sets("store.name")),
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
    ("REDIS_SOCKET_TYPE", OfRedis("store.engine")),
    ("REDIS_TYPE", OfRedis("store.engine")),
    ("REDIS_URL", OfRedis("store.engine")),
    ("REDIS_POOL_SIZE", Unsupported(FewConnections)),
    ("REDIS_AUTH", OfRedis("store.engine")),
    ("REDIS_TLS", OfRedis("store.engine")),
    ("REDIS_TLS_CLIENT_CERT", OfRedis("store.tls.cert")),
    ("REDIS_TLS_CLIENT_KEY", OfRedis("store.tls.key")),
    ("REDIS_TLS_CACERT", OfRedis("store.tls.ca")),
    (
        "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
        OnlyIf("false", AlwaysVerified),
    ),
    ("REDIS_PIPELINE_WINDOW", Unsupported(FewConnections)),
    ("REDIS_PIPELINE_LIMIT", Unsupported(FewConnections)),
    (
        "REDIS_CLUSTER_PIPELINE_PARALLELISM",
        Unsupported(FewConnections),
    ),
    ("REDIS_PERSECOND", OnlyIf("false", OneRedis)),
    ("REDIS_PERSECOND_SOCKET_TYPE", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_TYPE", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_URL", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_POOL_SIZE", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_AUTH", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_TLS", Unsupported(OneRedis)),
    ("REDIS_SENTINEL_AUTH", OfRedis("store.engine")),
    ("REDIS_PERSECOND_SENTINEL_AUTH", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_PIPELINE_WINDOW", Unsupported(OneRedis)),
    ("REDIS_PERSECOND_PIPELINE_LIMIT", Unsupported(OneRedis)),
    (
        "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
        Unsupported(OneRedis),
    ),
    (
        "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
        OnlyIf("false", HealthyWithout),
    ),
    ("REDIS_TIMEOUT", Unsupported(Timeouts)),
    ("REDIS_PERSECOND_TIMEOUT", Unsupported(OneRedis)),
    ("REDIS_POOL_ON_EMPTY_BEHAVIOR", Unsupported(FewConnections)),
    (
        "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR",
        Unsupported(OneRedis),
    ),
    (
        "REDIS_STARTUP_INITIAL_INTERVAL",
        Unsupported(StartsWithoutRedis),
    ),
    (
        "REDIS_STARTUP_MAX_INTERVAL",
        Unsupported(StartsWithoutRedis),
    ),
    (
        "REDIS_STARTUP_MAX_ELAPSED_TIME",
        Unsupported(StartsWithoutRedis),
    ),
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
            FewConnections => {
                "a core has a connection or two, and what waits at one moment goes out as one write"
            }
            OneRedis => "limits per second are counted in the same Redis as the others",
            HealthyWithout => {
                "without Redis it goes on limiting as `on_failure` says, and its health says degraded"
            }
            StartsWithoutRedis => "it starts without Redis, and uses it once it is there",
            Timeouts => "there it bounds connecting alone, here `store.timeout` bounds every call",
            AlwaysVerified => "the certificate of a Redis must be for its name",
            Memcached => "counters are kept in memory or in Redis",
            Xds => "rules come from files",
            Metadata => "which rule decided is always told, in dynamic_metadata",
            Statsd => "metrics are not pushed",
            StatsAreRead => "metrics cost nothing until they are read",
            PrometheusPage => {
                "metrics stand at /metrics of the admin listener, in units and labels of their own"
            }
            RefusalsRemembered => {
                "refusals are remembered in memory by themselves, but for strict limits, which ask Redis"
            }
            ExpiresByItself => "a counter expires when its window is over",
            StartsWithRules => "a server without good rules does not start",
            DotFiles => "files whose names begin with a dot are never rules",
            OtlpOverHttp => "spans are sent over HTTP",
            Self::HostOfAnother | Self::RedisOfAnother => {
                "other programs set it too, so it counts only beside RUNTIME_ROOT"
            }
            Self::NotInUrl => {
                "it goes with a REDIS_URL of HOST:PORT that names the store, and there is none in force"
            }
        }
    }

    /// What to do instead.
    pub(crate) const fn instead(self) -> &'static str {
        match self {
            OneRedis => "shard with Redis Cluster if one server is not enough",
            HealthyWithout => "watch the metrics of the store, or set on_failure: deny",
            Timeouts => "set store.timeout",
            AlwaysVerified => "give it a certificate for the name you reach it by",
            Memcached => "share counters in Redis; a memcached store is not planned",
            Xds => {
                "mount the rules as files, for example from a ConfigMap; changes are taken over at once"
            }
            Metadata => "read what you need of it, and leave the variable out",
            Statsd => "scrape /metrics of the admin listener",
            StatsAreRead | FewConnections | StartsWithoutRedis | RefusalsRemembered
            | ExpiresByItself => "leave it out",
            PrometheusPage => {
                "scrape port 6070, and set observing.metrics.reference_names for the old names"
            }
            StartsWithRules => "see to it that the rules are there first",
            DotFiles => "rename the file",
            OtlpOverHttp => "point OTEL_EXPORTER_OTLP_ENDPOINT at the HTTP port, 4318",
            Self::HostOfAnother => "use TIDEGATE_LISTENERS_HTTP",
            Self::RedisOfAnother => "use --store or TIDEGATE_STORE",
            Self::NotInUrl => "write it in the URL of --store or TIDEGATE_STORE, or leave it out",
        }
    }
}
