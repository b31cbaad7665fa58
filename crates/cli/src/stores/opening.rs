//! Making the store that the settings ask for, and a first look whether it is there.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec};
use tidegate_share::{
    EventualConfig, KnownMembers, LeaseConfig, SharedConfig, SharedStore, SplitConfig, StandbyLimit,
};
use tidegate_store::{
    Charge, Consistency, CounterKey, EmbeddedStore, LimitId, Store as _, StoreConfig, StoreError,
};
use tidegate_store_redis::client::{Client, ClientConfig, KnockError};
use tidegate_store_redis::{RedisMembers, RedisStore, RedisTotals};
use tracing::{info, warn};

use super::{AnyStore, Region, Shared};
use crate::config::{Config, Engine, RedisUrl, Standby, Store};
use crate::failure::Failure;
use crate::restart::{RestartFiles, StartMembers};

/// Whether Redis answered at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Present,
    Absent,
}

/// How long the start waits for Redis, however many servers there are to try.
const LONGEST_KNOCK: Duration = Duration::from_secs(2);

/// How long a call to another region may take, where its URL does not say, and connecting: nobody's request waits
/// for it, and an encrypted greeting goes around the world four times.
const FAR_TIMEOUT: Duration = Duration::from_secs(1);
const FAR_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the store of a process that has `local` in its memory. Connects to nobody that must be there.
///
/// # Errors
///
/// What waiting does not mend: files that cannot be read, a password that is refused, a server that is no
/// Redis. One that is not there yet is told of, and what it was to decide goes by `on_failure`.
pub(crate) async fn open(config: &Config, local: EmbeddedStore) -> Result<AnyStore, Failure> {
    let Engine::Redis(url) = &config.store.engine else {
        return Ok(AnyStore::Memory(local));
    };
    let client = client(&config.store, url)?;
    let name = &config.store.redis.name.0;
    let files = RestartFiles::open(config.store.folder.as_deref(), url, name);
    let members = files.members(config.store.sharing.members);
    if knock(&client, url, name).await? == Presence::Absent {
        tell_members(config.store.sharing.standby, members.heartbeat);
    }
    let others = config.regions.others(url);
    let regions: Result<Vec<Region>, Failure> = others
        .map(|(region, url)| {
            let client = new_client(&far(&url.config))?;
            let name = region.as_str().into();
            Ok(Region { name, client })
        })
        .collect();
    let regions = regions?;
    let elsewhere: Vec<RedisTotals> = regions
        .iter()
        .map(|region| RedisTotals::new(&region.client, name))
        .collect();
    let timeout = url.config.timeout.unwrap_or(config.store.redis.timeout);
    let sharing = sharing(&config.store, timeout, elsewhere.len(), members);
    let remote = RedisStore::new(client.clone()).named(name);
    let (store, restored) =
        SharedStore::restore(remote, local, sharing, |group| files.saved(group));
    files.report(&restored);
    Ok(AnyStore::Shared(Box::new(Shared {
        members: RedisMembers::new(&client, name),
        totals: RedisTotals::new(&client, name),
        elsewhere,
        regions,
        store,
        files,
    })))
}

/// How much memory the counters of a process may take that are in its own memory: all that there may be, or
/// a quarter if it keeps shares, totals and what it counts alone beside them.
pub(crate) const fn memory_of(store: &Store) -> StoreConfig {
    let max_memory = match store.engine {
        Engine::Memory => store.max_memory.0,
        Engine::Redis(_) => store.max_memory.0 / 4,
    };
    StoreConfig { max_memory }
}

fn client(store: &Store, url: &RedisUrl) -> Result<Client, Failure> {
    new_client(&store.redis.login(url)?)
}

/// The Redis of another region. With the timeout of a decision its circuit breaker would never close again.
fn far(config: &ClientConfig) -> ClientConfig {
    ClientConfig {
        timeout: config.timeout.or(Some(FAR_TIMEOUT)),
        connect_timeout: config.connect_timeout.or(Some(FAR_CONNECT_TIMEOUT)),
        ..config.clone()
    }
}

fn new_client(config: &ClientConfig) -> Result<Client, Failure> {
    Client::new(config).map_err(Failure::NoTls)
}

async fn knock(client: &Client, url: &RedisUrl, name: &str) -> Result<Presence, Failure> {
    let knocked = match client.knock(LONGEST_KNOCK).await {
        Ok(()) => try_rights(client, name).await,
        turned => turned,
    };
    match knocked {
        Ok(()) => {
            info!("counters are in Redis at {url}");
            Ok(Presence::Present)
        }
        Err(KnockError::Absent(reason)) => {
            warn!(
                "Redis is not there: {reason}; until it is, this node decides as `on_failure` of each rule says"
            );
            Ok(Presence::Absent)
        }
        Err(KnockError::Turned(reason)) => Err(Failure::NoEntry {
            url: url.to_string(),
            reason,
        }),
    }
}

/// Logs by how many members a node that starts without Redis divides limits.
fn tell_members(standby: Standby, known: KnownMembers) {
    if standby == Standby::Whole {
        return;
    }
    if let Some(members) = known.floor.max(known.remembered) {
        info!("limits are divided among {members} members until Redis answers");
    } else {
        warn!(
            "number of members unknown: this node enforces whole limits until Redis answers; set `store.members`, \
             or keep the folder of `store.folder` over restarts"
        );
    }
}

/// Asks about a counter that nobody has, which leaves no trace: who is let in may still have no right to run a
/// script, and would hear of it with every request.
async fn try_rights(client: &Client, name: &str) -> Result<(), KnockError> {
    let Ok(quota) = Quota::new(&QuotaSpec {
        limit: 1,
        window: Duration::from_secs(1),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    }) else {
        return Ok(());
    };
    let key = CounterKey {
        limit: LimitId(0),
        values: &[],
    };
    let store = RedisStore::new(client.with_timeout(LONGEST_KNOCK)).named(name);
    let look = Charge::look(key, &quota, Consistency::Strict);
    match store.peek(&look).await {
        Err(StoreError::Unavailable { reason }) if reason.contains("NOPERM") => {
            Err(KnockError::Turned(reason.to_string()))
        }
        // Whatever else there is, Redis may mend.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn sharing(
    store: &Store,
    store_timeout: Duration,
    other_regions: usize,
    members: StartMembers,
) -> SharedConfig {
    let said = &store.sharing;
    let part = StoreConfig {
        max_memory: store.max_memory.0 / 4,
    };
    SharedConfig {
        leases: LeaseConfig {
            life: said.lease_life,
            remember_denials: said.remember_denials,
            ..LeaseConfig::default()
        },
        standby: match said.standby {
            Standby::Share => StandbyLimit::Share,
            Standby::Whole => StandbyLimit::Whole,
        },
        standby_memory: part,
        split: SplitConfig {
            heartbeat: said.heartbeat,
            expiry: said.member_expiry,
            store: part,
            store_timeout,
            members: members.heartbeat,
        },
        eventual: EventualConfig {
            sync_interval: said.sync_interval,
            slack: said.slack.0,
            memory: part,
            other_regions,
            members: members.eventual,
        },
    }
}
