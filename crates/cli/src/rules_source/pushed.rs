//! Rules that somebody pushed to Redis.
//!
//! What Redis says is newest decides, not the notice that there is something new: a notice only ends the
//! wait early. So a lost notice costs a second and nothing else.

mod cache;

use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_rules::Compiled;
use tidegate_store::StoreError;
use tidegate_store_redis::book::{BookError, Entry, Head, Notices, RuleBook, Version};
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use crate::config::{PushedPlace, Rules};
use crate::failure::Failure;
use crate::version::{About, Bundle, NotABundle};
use crate::{reload, rules_files, timestamp};
use cache::RulesCache;

/// Rules that somebody pushed to Redis.
#[derive(Debug)]
pub(crate) struct PushedRules {
    rules: Rules,
    /// Where they are, for people.
    place: String,
    book: RuleBook,
    cache: Option<RulesCache>,
    /// What was newest when it was last read.
    seen: Mutex<Option<Head>>,
    in_force: Mutex<Option<InForce>>,
    /// What keeps us from looking for new versions, as it was told.
    trouble: Mutex<Option<String>>,
    /// Held by whoever waits for a new version.
    ear: tokio::sync::Mutex<Ear>,
}

/// The version in force.
#[derive(Debug)]
struct InForce {
    entry: Entry,
    from: Origin,
}

/// Where a version was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Redis,
    Cache,
}

/// Listens for notices.
#[derive(Debug)]
enum Ear {
    /// A notice may come.
    Open(Notices),
    /// None can come; it is tried again after so many looks without one.
    Deaf { looks: u32 },
}

/// Rules that could not be had from Redis.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PushedError {
    /// Redis does not answer.
    #[error("cannot reach the rules in {place}: {}", unreached(reason))]
    Unreachable { place: String, reason: BookError },
    /// Nobody has pushed any yet.
    #[error(
        "there are no rules in {place}; push some with `tidegate rules push PATH --to {place}`"
    )]
    Nothing { place: String },
    /// The newest version is none that can be read.
    #[error("the newest rules in {place} are of no use: {reason}; push them again")]
    Damaged { place: String, reason: BookError },
    /// A version that was never there, or is kept no longer.
    #[error(
        "there is no version {number} in {place}; `tidegate rules history` lists those that are kept"
    )]
    NoVersion { number: u64, place: String },
    /// Redis answers, but not with what was asked for.
    #[error("{reason}, in {place}")]
    Refused { place: String, reason: BookError },
    /// A version that this release cannot read.
    #[error("version {number} in {place} is of no use: {reason}")]
    NoBundle {
        number: u64,
        place: String,
        reason: NotABundle,
    },
}

/// How often it is asked for new versions, although there was no notice: so that also without one a
/// version is in force within a second.
const PATIENCE: Duration = Duration::from_millis(800);

/// After how many looks listening is tried again where it did not work: there may be no right to it.
const LOOKS_WHILE_DEAF: u32 = 10;

// === impl PushedRules ===

impl PushedRules {
    pub(super) fn new(rules: Rules, pushed: &PushedPlace) -> Result<Self, Failure> {
        let login = pushed.login()?;
        Ok(Self {
            rules,
            place: pushed.url.to_string(),
            book: RuleBook::new(&login, &pushed.name.0).map_err(Failure::NoTls)?,
            cache: pushed.cache.clone().map(RulesCache::at),
            seen: Mutex::default(),
            in_force: Mutex::default(),
            trouble: Mutex::default(),
            ear: tokio::sync::Mutex::new(Ear::Deaf { looks: 0 }),
        })
    }

    /// The first rules: the newest version, else the newest that is good, else the copy of the one that
    /// was last in force here.
    pub(super) async fn start(&self) -> Result<Compiled, Failure> {
        let failure = match self.read().await {
            Ok(compiled) => return Ok(compiled),
            Err(failure) => failure,
        };
        let is_there = !matches!(failure, Failure::Pushed(PushedError::Unreachable { .. }));
        let older = if is_there {
            self.read_older().await
        } else {
            None
        };
        let instead = match older {
            Some(compiled) => Some(compiled),
            None => self.read_cache().await,
        };
        let Some(compiled) = instead else {
            return Err(failure);
        };
        let (reason, findings) = reload::reason_of(failure);
        let (source, findings) = (self.describe(), reload::below(&findings));
        warn!("{reason}; starting with {source}{findings}");
        Ok(compiled)
    }

    /// The newest version.
    pub(super) async fn read(&self) -> Result<Compiled, Failure> {
        let head = self.book.head().await.map_err(|it| self.unreachable(it))?;
        let Some(known) = &head else {
            *lock(&self.seen) = None;
            let place = self.place.clone();
            return Err(Failure::Pushed(PushedError::Nothing { place }));
        };
        let fetched = match known.read() {
            Ok((number, digest)) => self.book.fetch_exactly(number, digest).await,
            Err(fault) => Err(fault),
        };
        let version = match fetched {
            Ok(version) => version,
            Err(reason @ BookError::Store(_)) => return Err(self.unreachable(reason)),
            Err(reason) => {
                *lock(&self.seen) = head;
                let place = self.place.clone();
                return Err(Failure::Pushed(PushedError::Damaged { place, reason }));
            }
        };
        *lock(&self.seen) = head;
        self.take(version).await
    }

    /// Ready when there is another version than the one that was last read.
    pub(super) async fn changed(&self) {
        if !self.rules.watch {
            return pending().await;
        }
        let mut ear = self.ear.lock().await;
        loop {
            // Before the look at what is newest, so that no change falls between the two.
            self.listen(&mut ear).await;
            match self.book.head().await {
                Ok(head) => {
                    self.tell_trouble(None);
                    if head != *lock(&self.seen) {
                        return;
                    }
                }
                Err(fault) => self.tell_trouble(Some(unreached(&fault))),
            }
            wait(&mut ear).await;
        }
    }

    /// The number of the version in force.
    pub(super) fn version(&self) -> Option<u64> {
        lock(&self.in_force).as_ref().map(|it| it.entry.number)
    }

    /// Where the rules come from, for people.
    pub(super) fn describe(&self) -> String {
        match &*lock(&self.in_force) {
            Some(it) => format!("{}, {}", self.place, self.told(it)),
            None => self.place.clone(),
        }
    }

    /// Listens for notices, unless that is done already, or did not work just now.
    async fn listen(&self, ear: &mut Ear) {
        *ear = match ear {
            Ear::Open(_) => return,
            Ear::Deaf { looks: 0 } => match self.book.listen().await {
                Ok(notices) => Ear::Open(notices),
                Err(fault) => {
                    debug!("no notices of new rules in {}: {fault}", self.place);
                    let looks = LOOKS_WHILE_DEAF;
                    Ear::Deaf { looks }
                }
            },
            Ear::Deaf { looks } => Ear::Deaf { looks: *looks - 1 },
        };
    }

    /// The newest version before the newest that is good, if Redis answers.
    async fn read_older(&self) -> Option<Compiled> {
        let history = self.book.history().await.ok()?;
        for entry in history.entries {
            if let Ok(version) = self.book.fetch(entry.number).await
                && let Ok(compiled) = self.take(version).await
            {
                return Some(compiled);
            }
        }
        None
    }

    /// The version that was last in force here, if there is a copy of it and it is good.
    async fn read_cache(&self) -> Option<Compiled> {
        let cache = self.cache.as_ref()?;
        let version = match cache.read().await {
            Ok(version) => version,
            Err(fault) => {
                error!("{fault}");
                return None;
            }
        };
        let compiled = match self.compile(&version).await {
            Ok(compiled) => compiled,
            Err(failure) => {
                let (reason, findings) = reload::reason_of(failure);
                let findings = reload::below(&findings);
                error!("the copy of the rules in {cache} is of no use: {reason}{findings}");
                return None;
            }
        };
        let entry = version.entry;
        // If nobody could be asked, what comes to be known as newest is compared with this.
        lock(&self.seen).get_or_insert_with(|| Head::of(entry.number, entry.digest));
        let from = Origin::Cache;
        *lock(&self.in_force) = Some(InForce { entry, from });
        Some(compiled)
    }

    /// Takes a version to be in force, if it is good.
    async fn take(&self, version: Version) -> Result<Compiled, Failure> {
        let compiled = self.compile(&version).await?;
        if let Some(cache) = &self.cache {
            cache.write(&version).await;
        }
        let (entry, from) = (version.entry, Origin::Redis);
        *lock(&self.in_force) = Some(InForce { entry, from });
        Ok(compiled)
    }

    async fn compile(&self, version: &Version) -> Result<Compiled, Failure> {
        let number = version.entry.number;
        let bundle = Bundle::read(&version.body).map_err(|reason| {
            let place = self.place.clone();
            Failure::Pushed(PushedError::NoBundle {
                number,
                place,
                reason,
            })
        })?;
        let mut rules = self.rules.clone();
        rules.merge_domains |= bundle.merge_domains;
        let compile = move || rules_files::compile_all(&bundle.sources(number), &rules);
        super::apart(move || compile().map_err(Failure::BadRules)).await
    }

    fn unreachable(&self, reason: BookError) -> Failure {
        let place = self.place.clone();
        Failure::Pushed(PushedError::Unreachable { place, reason })
    }

    /// A version for people: `version 17 of 2026-11-16T02:00:00Z by ann`; one that was not read in Redis
    /// may be old, so it is said how old.
    fn told(&self, in_force: &InForce) -> String {
        let InForce { entry, from } = in_force;
        let About { author, .. } = About::read(&entry.about);
        let by = if author.is_empty() { "" } else { " by " };
        let at = timestamp::since_1970(entry.at);
        let told = format!("version {} of {at}{by}{author}", entry.number);
        match (from, &self.cache) {
            (Origin::Cache, Some(cache)) => {
                let age = timestamp::age(entry.at);
                format!("{told}, as kept in {cache} ({age} old)")
            }
            (Origin::Redis | Origin::Cache, _) => told,
        }
    }

    /// Says what keeps us from looking for new versions, or that nothing does any more: once each.
    fn tell_trouble(&self, trouble: Option<String>) {
        let mut told = lock(&self.trouble);
        match (&*told, &trouble) {
            (None, Some(reason)) => warn!(
                "cannot look for new rules in {}: {reason}; those before stay in force",
                self.place
            ),
            (Some(_), None) => info!("can look for new rules in {} again", self.place),
            (None, None) | (Some(_), Some(_)) => {}
        }
        *told = trouble;
    }
}

/// Why Redis could not be asked. What the client calls a store has the rules here.
fn unreached(error: &BookError) -> String {
    match error {
        BookError::Store(StoreError::Unavailable { reason }) => reason.to_string(),
        other => other.to_string(),
    }
}

/// Waits for a notice, but no longer than for the next look.
async fn wait(ear: &mut Ear) {
    let heard = match ear {
        Ear::Open(notices) => timeout(PATIENCE, notices.next()).await,
        Ear::Deaf { .. } => timeout(PATIENCE, pending()).await,
    };
    if let Ok(Err(_lost)) = heard {
        *ear = Ear::Deaf { looks: 0 };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
