//! The gateway as all threads see it: the settings in force and the state of the upstreams.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_identify::{Identities, Peer};
use tidegate_observe::GatewayGauges;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::GatewayConfig;
use crate::connection::StreamMemory;
use crate::counts::{Origin, ResponseCounts};
use crate::upstream::{SharedUpstream, UpstreamError};

/// A gateway. Its settings can be replaced while it runs.
#[derive(Debug)]
pub struct Gateway {
    current: ArcSwap<Generation>,
    /// Tells the background work that another generation is in force.
    replaced: watch::Sender<()>,
    threads: NonZeroUsize,
    stream_memory: Arc<StreamMemory>,
    /// The counts of each thread.
    responses: Mutex<Vec<Arc<ResponseCounts>>>,
}

/// Other settings for a gateway, whose files were read.
#[derive(Debug)]
pub struct PreparedSettings(Generation);

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("upstream `{upstream}` cannot be used")]
pub struct GatewayError {
    upstream: String,
    #[source]
    cause: UpstreamError,
}

/// The settings in force, with the state of their upstreams.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) config: Arc<GatewayConfig>,
    /// In the order of the settings.
    pub(crate) upstreams: Vec<Arc<SharedUpstream>>,
}

// === impl Gateway ===

impl Gateway {
    /// A gateway whose requests are answered by `threads` threads. Reads the files of the upstreams' TLS.
    pub fn new(config: GatewayConfig, threads: NonZeroUsize) -> Result<Self, GatewayError> {
        let generation = Generation::new(config, &[])?;
        Ok(Self {
            current: ArcSwap::from_pointee(generation),
            replaced: watch::Sender::new(()),
            threads,
            stream_memory: Arc::default(),
            responses: Mutex::default(),
        })
    }

    /// Puts `config` in force for every request that comes after. Connections stay open, and targets that both settings name keep
    /// their health and their connections. If it cannot be used, the settings before stay in force.
    pub fn replace(&self, config: GatewayConfig) -> Result<(), GatewayError> {
        self.install(self.prepare(config)?);
        Ok(())
    }

    /// The first half of [`replace`](Self::replace): reads the files of the upstreams' TLS, which may take a while.
    pub fn prepare(&self, config: GatewayConfig) -> Result<PreparedSettings, GatewayError> {
        let upstreams = &self.current.load().upstreams;
        Generation::new(config, upstreams).map(PreparedSettings)
    }

    /// The second half of [`replace`](Self::replace). Settings must not have been replaced since they were prepared.
    pub fn install(&self, settings: PreparedSettings) {
        self.current.store(Arc::new(settings.0));
        self.replaced.send_replace(());
    }

    /// Puts other identities in force for every request that comes after. Everything else stays, and no file is read, so it cannot fail.
    pub fn replace_identities(&self, identities: Arc<Identities>) {
        let current = self.current.load();
        let config = GatewayConfig {
            identities,
            ..(*current.config).clone()
        };
        self.current.store(Arc::new(Generation {
            config: Arc::new(config),
            upstreams: current.upstreams.clone(),
        }));
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<GatewayConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// True if `peer` is a trusted proxy, which speaks for many clients.
    pub fn trusts(&self, peer: Peer) -> bool {
        self.current.load().config.client_address.trusts(peer)
    }

    /// Looks up the names of targets and checks their health, for ever.
    pub async fn run(self: Arc<Self>) {
        let mut replaced = self.replaced.subscribe();
        loop {
            let mut tasks = JoinSet::new();
            for upstream in &self.current.load().upstreams {
                tasks.spawn(Arc::clone(upstream).run());
            }
            // The sender lives as long as this gateway does.
            if replaced.changed().await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// The counts of responses and the state of the upstreams, for metrics.
    pub fn gauges(&self) -> GatewayGauges {
        let threads = self
            .responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let responses = [Origin::Upstream, Origin::Gateway].map(|origin| {
            let counts = threads.iter().map(|counts| counts.get(origin));
            let add = |sum: [u64; 5], counts: [u64; 5]| {
                std::array::from_fn(|class| sum[class] + counts[class])
            };
            (origin.name(), counts.fold([0; 5], add))
        });
        let upstreams = &self.current.load().upstreams;
        GatewayGauges {
            responses: responses.into(),
            upstreams: upstreams.iter().map(|upstream| upstream.gauges()).collect(),
        }
    }

    /// Counts for one more thread.
    pub(crate) fn counts(&self) -> Arc<ResponseCounts> {
        let counts = Arc::<ResponseCounts>::default();
        let mut threads = self
            .responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&counts));
        counts
    }

    pub(crate) const fn stream_memory(&self) -> &Arc<StreamMemory> {
        &self.stream_memory
    }

    pub(crate) const fn threads(&self) -> NonZeroUsize {
        self.threads
    }
}

// === impl Generation ===

impl Generation {
    fn new(config: GatewayConfig, old: &[Arc<SharedUpstream>]) -> Result<Self, GatewayError> {
        let upstream = |upstream: &Arc<_>| {
            SharedUpstream::replacing(Arc::clone(upstream), old).map_err(|cause| GatewayError {
                upstream: upstream.name.clone(),
                cause,
            })
        };
        let upstreams = config
            .upstreams
            .iter()
            .map(upstream)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            config: Arc::new(config),
            upstreams,
        })
    }
}
