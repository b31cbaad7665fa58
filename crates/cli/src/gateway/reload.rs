//! Other settings for a server that runs: of its gateway, and of identities. Bad ones never replace good ones, and no connection
//! is closed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_gateway::{Gateway, PreparedSettings};
use tidegate_identify::{Identities, TokenKeys};
use tidegate_observe::{Observatory, ReloadSubject};
use tidegate_server::AuthorizeConfig;
use tokio::signal::unix::Signal;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::key_set::{KeySetFetch, Schedule};
use crate::args::SettingArgs;
use crate::config::{self, Config, Known, Loaded, RulesFiles};
use crate::failure::Failure;
use crate::identity::warn_of_left_out;
use crate::reload::{findings_field, reason_of};
use crate::watch::{self, Fingerprint, WatchedFiles};

/// Reads the settings again and puts those of the gateway and of identities in force if they are good.
#[derive(Debug)]
pub(crate) struct SettingsReloader {
    args: SettingArgs,
    gateway: Option<Arc<Gateway>>,
    observatory: Arc<Observatory>,
    /// Where `/v1/authorize` finds the identities in force.
    authorize: AuthorizeConfig,
    /// The settings at start, of which some are only read then.
    started: Vec<Known>,
    /// Held by the reload under way, so that an older one never undoes a newer one.
    in_force: tokio::sync::Mutex<InForce>,
    seen: Mutex<Seen>,
    /// The turn of the one read of files under way.
    reading: Arc<Semaphore>,
}

/// The longest time that a read of files may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings in force.
#[derive(Debug)]
struct InForce {
    config: Config,
    /// The set of token keys behind a URL, as it was last fetched.
    keys: Option<TokenKeys>,
    /// The reason why the last reload failed, if it did.
    last_failure: Option<String>,
}

/// The end of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadEnd {
    /// The settings are in force, or have faults until a file changes.
    Final,
    /// A file could not be read or used, perhaps only now.
    Unread,
}

/// The files that were read last.
#[derive(Clone, Debug)]
struct Seen {
    files: WatchedFiles,
    fingerprint: Fingerprint,
}

/// Settings that were read again.
struct Reread {
    loaded: Loaded,
    identities: Arc<Identities>,
    gateway: Option<PreparedSettings>,
    seen: Seen,
    keys: Option<TokenKeys>,
}

// === impl SettingsReloader ===

impl SettingsReloader {
    /// For a server whose settings are in force as `loaded` has them, with the token keys that were fetched for it.
    pub(crate) fn new(
        args: SettingArgs,
        gateway: Option<Arc<Gateway>>,
        observatory: Arc<Observatory>,
        loaded: &Loaded,
        keys: Option<TokenKeys>,
    ) -> Self {
        let files = watched(loaded);
        let seen = Seen {
            fingerprint: Fingerprint::of(&files),
            files,
        };
        Self {
            args,
            gateway,
            observatory,
            authorize: loaded.config.authorize.clone(),
            started: loaded.known.clone(),
            in_force: tokio::sync::Mutex::new(InForce {
                config: loaded.config.clone(),
                keys,
                last_failure: None,
            }),
            seen: Mutex::new(seen),
            reading: Arc::new(Semaphore::new(1)),
        }
    }

    /// Reads the settings when a file changes and when `hangup` comes, and token keys behind a URL now and then, for ever.
    pub(crate) async fn run(&self, hangup: Signal) {
        tokio::join!(self.on_hangup(hangup), self.watch(), self.refresh_keys());
    }

    async fn on_hangup(&self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            self.reload("signal").await;
        }
    }

    async fn watch(&self) {
        let mut n_unread = 0;
        loop {
            if !self.in_force.lock().await.config.rules.watch {
                // Only a signal can switch it on again, and then nobody waits for this.
                return;
            }
            let files = self.seen().files;
            watch::changed_or_due(&files, || self.seen().fingerprint, n_unread).await;
            n_unread = match self.reload("watch").await {
                ReloadEnd::Final => 0,
                ReloadEnd::Unread => n_unread.saturating_add(1),
            };
        }
    }

    /// Reads the settings; one reload waits for the other.
    async fn reload(&self, trigger: &'static str) -> ReloadEnd {
        let mut in_force = self.in_force.lock().await;
        // In a box, because all settings are in it.
        match Box::pin(self.reread(&in_force)).await {
            Ok(reread) => {
                let (loaded, keys) = self.replace(reread);
                self.observatory.settings_reloaded();
                loaded.warn();
                let (routes, upstreams) = count(&loaded.config);
                info!(trigger, routes, upstreams, "reloaded the settings");
                let late = config::changed(&self.started, &loaded.known, is_read_at_start);
                if !late.is_empty() {
                    warn!("restart to apply: {}", late.join(", "));
                }
                *in_force = InForce {
                    config: loaded.config,
                    keys,
                    last_failure: None,
                };
                ReloadEnd::Final
            }
            Err(failure) => {
                self.observatory.reload_failed(ReloadSubject::Settings);
                let end = ReloadEnd::of(&failure);
                let (reason, findings) = reason_of(failure);
                // A read that is tried again often fails for the same reason.
                let is_news = in_force.last_failure.as_ref() != Some(&reason);
                if is_news || end == ReloadEnd::Final || trigger != "watch" {
                    error!(
                        trigger,
                        findings = findings_field(&findings),
                        "settings reload failed; the previous settings stay in force: {reason}"
                    );
                }
                in_force.last_failure = Some(reason);
                end
            }
        }
    }

    /// Reads the settings and all files that they name.
    async fn reread(&self, in_force: &InForce) -> Result<Reread, Failure> {
        let (args, before) = (self.args.clone(), self.seen().files);
        let looked = self.apart(move || {
            // The look comes before the reading, so that a change while they are read is seen as one.
            let fingerprint = Fingerprint::of(&before);
            Ok((fingerprint, config::load(&args)))
        });
        let (fingerprint, loaded) = looked.await?;
        self.lock_seen().fingerprint = fingerprint.clone();
        let loaded = loaded?;
        if self.gateway.is_some() && !loaded.config.has_gateway() {
            return Err(Failure::GatewayGone);
        }
        let keys = match KeySetFetch::of(&loaded.config) {
            Some(fetch) if Some(&fetch) == KeySetFetch::of(&in_force.config).as_ref() => {
                in_force.keys.clone()
            }
            Some(fetch) => Some(fetch.for_reload().await?),
            None => None,
        };
        let (old, gateway) = (self.identities(), self.gateway.clone());
        let built = self.apart(move || {
            let files = watched(&loaded);
            let seen = Seen {
                fingerprint: Fingerprint::of(&files).seen_since(&fingerprint),
                files,
            };
            let built = super::build(&loaded.config, keys.as_ref(), &old)?;
            let prepared = match (gateway, built.gateway) {
                (Some(gateway), Some(config)) => Some(gateway.prepare(config)),
                _ => None,
            };
            Ok(Reread {
                loaded,
                identities: built.identities,
                gateway: prepared.transpose().map_err(Failure::NoGateway)?,
                seen,
                keys,
            })
        });
        Box::pin(built).await
    }

    /// Puts the settings in force for every request that comes after.
    fn replace(&self, reread: Reread) -> (Loaded, Option<TokenKeys>) {
        if let (Some(gateway), Some(settings)) = (&self.gateway, reread.gateway) {
            gateway.install(settings);
        }
        self.authorize.identities.store(reread.identities);
        *self.lock_seen() = reread.seen;
        (reread.loaded, reread.keys)
    }

    /// Reads files apart from the thread that asks, and not for ever: a reload that waits for a file system that is gone would keep
    /// all others, and new token keys, waiting.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let reading = Arc::clone(&self.reading);
        // Boxed, because settings are large, and futures copy what they are given.
        let work = Box::new(work);
        let read = async move {
            // While one read hangs, another would only hang beside it.
            let turn = reading.acquire_owned().await;
            apart(move || {
                let read = work();
                drop(turn);
                read
            })
            .await
        };
        in_time(read).await
    }

    /// Fetches the token keys behind a URL now and then, for ever.
    async fn refresh_keys(&self) {
        let fetched = KeySetFetch::of(&self.in_force.lock().await.config);
        let mut schedule = Schedule::new(fetched);
        loop {
            schedule.tick().await;
            let (fetch, keys) = {
                let in_force = self.in_force.lock().await;
                (KeySetFetch::of(&in_force.config), in_force.keys.clone())
            };
            let identities = self.identities();
            let unknown = identities.tokens().map(|it| it.n_unknown_keys());
            let unknown = unknown.unwrap_or_default();
            schedule.follow(fetch.as_ref(), unknown);
            let Some(fetch) = fetch else { continue };
            if !schedule.is_due(keys.is_some(), unknown) {
                continue;
            }
            match fetch.fetch().await {
                Ok(fetched) => self.put_keys(&fetch, fetched).await,
                Err(reason) => warn!(url = %fetch, "cannot fetch token keys: {reason}"),
            }
        }
    }

    /// Puts fetched keys in force, if they are others. Everything else stays as it is in force: no file is read, because a fault in one
    /// of them must not keep new keys out.
    async fn put_keys(&self, fetch: &KeySetFetch, keys: TokenKeys) {
        let mut in_force = self.in_force.lock().await;
        let is_same = in_force.keys.as_ref() == Some(&keys);
        if is_same || KeySetFetch::of(&in_force.config).as_ref() != Some(fetch) {
            return;
        }
        let old = self.identities();
        let Some(verifier) = old.tokens() else {
            return;
        };
        let verifier = verifier.replaced_by(verifier.settings().clone(), keys.clone());
        let identities = Arc::new((*old).clone().with_tokens(Arc::new(verifier)));
        if let Some(gateway) = &self.gateway {
            gateway.replace_identities(Arc::clone(&identities));
        }
        self.authorize.identities.store(identities);
        info!(url = %fetch, keys = keys.len(), "fetched new token keys");
        warn_of_left_out(&keys, fetch);
        in_force.keys = Some(keys);
    }

    /// The identities in force.
    fn identities(&self) -> Arc<Identities> {
        self.authorize.identities.load_full()
    }

    fn seen(&self) -> Seen {
        self.lock_seen().clone()
    }

    fn lock_seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ReloadEnd ===

impl ReloadEnd {
    fn of(failure: &Failure) -> Self {
        match failure {
            Failure::NoConfig { .. }
            | Failure::BadFile { .. }
            | Failure::NoTokenKeys { .. }
            | Failure::System { .. } => Self::Unread,
            _ => Self::Final,
        }
    }
}

/// Whether a setting is only read at start.
fn is_read_at_start(path: &str) -> bool {
    let is_reloaded = ["gateway.", "identity.", "client_address."]
        .iter()
        .any(|block| path.starts_with(block));
    !is_reloaded || path.starts_with("gateway.bounds.")
}

/// The files of which the gateway is made, the config file first.
fn watched(loaded: &Loaded) -> WatchedFiles {
    let config_file = loaded.file.clone().into_iter();
    let paths: Vec<PathBuf> = config_file.chain(super::files(&loaded.config)).collect();
    WatchedFiles {
        paths,
        files: RulesFiles::Yaml,
    }
}

/// How many routes and upstreams there are.
fn count(config: &Config) -> (usize, usize) {
    (config.gateway.routes.len(), config.gateway.upstreams.len())
}

/// Reads files apart from the thread that asks, and not for ever.
pub(super) async fn read_apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    in_time(apart(work)).await
}

/// The end of a read, or a failure if it takes too long.
async fn in_time<T>(read: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(READ_TIMEOUT, read).await.unwrap_or_else(|_| {
        let seconds = READ_TIMEOUT.as_secs();
        let reason = format!("their files do not answer within {seconds} seconds");
        Err(Failure::System {
            what: "read the settings",
            reason: std::io::Error::other(reason),
        })
    })
}

/// Does what may take a while apart from the thread that asks.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|reason| {
        Err(Failure::System {
            what: "read the settings",
            reason: std::io::Error::other(reason),
        })
    })
}
