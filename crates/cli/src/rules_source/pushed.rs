//! Rules that somebody pushed to Redis.
//!
//! What Redis says is newest decides, not the notice that there is something new: a notice only ends the
//! wait early. So a lost notice costs a second and nothing else.

mod cache;

use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_rules::Compiled;
use tidegate_store_redis::book::{BookError, Entry, Head, Notices, RuleBook, Version};
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::config::{PushedPlace, Rules};
use crate::failure::Failure;
use crate::rules_files;
use crate::timestamp;
use crate::version::{About, Bundle, NotABundle};
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
    /// The version in force.
    in_force: Mutex<Option<Entry>>,
    /// What keeps us from looking for new versions, as it was told.
    trouble: Mutex<Option<String>>,
    /// Held by whoever waits for a new version.
    notices: tokio::sync::Mutex<Option<Notices>>,
}

/// Rules that could not be had from Redis.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PushedError {
    /// Redis does not answer.
    #[error("cannot read the rules in {place}: {reason}")]
    Unreachable { place: String, reason: BookError },
    /// Nobody has pushed any yet.
    #[error(
        "there are no rules in {place}; push some with `tidegate rules push PATH --to {place}`"
    )]
    Nothing { place: String },
    /// The newest version is none that can be read.
    #[error("the newest rules in {place} are of no use: {reason}")]
    Damaged { place: String, reason: BookError },
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

/// How often it is asked for new versions, although there was no notice.
const PATIENCE: Duration = Duration::from_secs(1);

// === impl PushedRules ===

impl PushedRules {
    pub(super) fn new(rules: Rules, pushed: &PushedPlace) -> Result<Self, Failure> {
        let PushedPlace { url, name, cache } = pushed;
        Ok(Self {
            rules,
            place: url.to_string(),
            book: RuleBook::new(&url.config, &name.0).map_err(Failure::NoTls)?,
            cache: cache.clone().map(RulesCache::at),
            seen: Mutex::default(),
            in_force: Mutex::default(),
            trouble: Mutex::default(),
            notices: tokio::sync::Mutex::default(),
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
        if is_there && let Some(compiled) = self.read_older().await {
            self.tell_start(&failure, "");
            return Ok(compiled);
        }
        let Some(cache) = &self.cache else {
            return Err(failure);
        };
        let version = match cache.read().await {
            Ok(version) => version,
            Err(no_cache) => {
                error!("{no_cache}");
                return Err(failure);
            }
        };
        let Ok(compiled) = self.compile(&version).await else {
            error!("the copy of the rules in {cache} is of no use");
            return Err(failure);
        };
        if lock(&self.seen).is_none() {
            // Nobody could be asked: what comes to be known as newest is compared with this.
            *lock(&self.seen) = Some(Head::of(version.entry.number, version.entry.digest));
        }
        *lock(&self.in_force) = Some(version.entry);
        self.tell_start(&failure, &format!(", as kept in {cache}"));
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
        let mut notices = self.notices.lock().await;
        loop {
            // Before the look at what is newest, so that no change falls between the two.
            if notices.is_none() {
                *notices = self.book.listen().await.ok();
            }
            match self.book.head().await {
                Ok(head) => {
                    self.tell_trouble(None);
                    if head != *lock(&self.seen) {
                        return;
                    }
                }
                Err(fault) => self.tell_trouble(Some(fault.to_string())),
            }
            self.wait(&mut notices).await;
        }
    }

    /// The number of the version in force.
    pub(super) fn version(&self) -> Option<u64> {
        lock(&self.in_force).as_ref().map(|entry| entry.number)
    }

    /// Where the rules come from, for people.
    pub(super) fn describe(&self) -> String {
        match &*lock(&self.in_force) {
            Some(entry) => format!("{}, {}", self.place, described(entry)),
            None => self.place.clone(),
        }
    }

    async fn wait(&self, notices: &mut Option<Notices>) {
        let heard = match notices {
            Some(notices) => timeout(PATIENCE, notices.next()).await,
            None => timeout(PATIENCE, pending()).await,
        };
        if let Ok(Err(_lost)) = heard {
            *notices = None;
        }
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

    /// Puts a version in force, if it is good.
    async fn take(&self, version: Version) -> Result<Compiled, Failure> {
        let compiled = self.compile(&version).await?;
        if let Some(cache) = &self.cache {
            cache.write(&version).await;
        }
        *lock(&self.in_force) = Some(version.entry);
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

    fn tell_start(&self, failure: &Failure, from: &str) {
        let text = lock(&self.in_force)
            .as_ref()
            .map_or_else(String::new, described);
        warn!("{failure}; starting with {text}{from}");
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

/// A version for people: `version 17 of 2026-11-16T02:00:00Z by ann`.
fn described(entry: &Entry) -> String {
    let About { author, .. } = About::read(&entry.about);
    let by = if author.is_empty() { "" } else { " by " };
    let at = timestamp::since_1970(entry.at);
    format!("version {} of {at}{by}{author}", entry.number)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
