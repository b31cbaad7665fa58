//! The rules of all nodes: versions of them in Redis, numbered, the newest in force.
//!
//! A body is bytes here, and what is said about it a text: what they mean is for whoever pushes and
//! fetches. Every key of a book has the same hash tag, so that one script reaches them all.

mod digest;
mod notices;
mod stored;

use std::time::Duration;

use tidegate_store::StoreError;

use crate::client::{
    Array, Changes, Client, ClientConfig, Command, Reply, Route, Script, TlsError, Value,
};
pub use digest::{Digest, NotADigest};
pub use notices::{Notices, NoticesLost};
pub use stored::Head;

/// The most bytes of a version. It is read whole by every node, at the same moment.
pub const MAX_BODY: usize = 4 << 20;

/// How many versions are kept; a push drops those before.
pub const KEPT: u64 = 100;

/// How long a call may take. Nobody's request waits for one, and a version may be large.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The versions of one set of rules.
#[derive(Debug)]
pub struct RuleBook {
    client: Client,
    keys: Keys,
    push: Script,
}

/// What is to become a version.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'d> {
    /// What nodes are to read.
    pub body: &'d [u8],
    /// What the history is to say about it: one line.
    pub about: &'d str,
}

/// What must be the newest version for a push to go on, so that nobody's work is overwritten unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever there is.
    Any,
    /// None at all.
    Nothing,
    /// The version of this number.
    Newest(u64),
}

/// What came of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// There is a new version.
    New {
        /// Its number.
        number: u64,
        /// The version that was the newest before; `None` if there was none.
        before: Option<u64>,
    },
    /// The newest version has this body already; it stays the newest.
    Same {
        /// Its number.
        number: u64,
    },
    /// Another version than the expected one is the newest; nothing was stored.
    Overtaken {
        /// Its number; `None` if there is none at all.
        newest: Option<u64>,
    },
}

/// A version, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number; a later version has a larger one.
    pub number: u64,
    /// When it was pushed, since 1970, by the clock of Redis.
    pub at: Duration,
    /// The digest of its body.
    pub digest: Digest,
    /// The size of its body.
    pub bytes: u64,
    /// What is said about it.
    pub about: String,
}

/// A version with its body, which has the digest that it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// All about it.
    pub entry: Entry,
    /// What nodes are to read.
    pub body: Vec<u8>,
}

/// All versions that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The versions, the newest first.
    pub entries: Vec<Entry>,
    /// How many lines there are besides that no push has written.
    pub unreadable: usize,
}

/// The keys of a book; all have its name as their hash tag.
#[derive(Debug)]
struct Keys {
    newest: String,
    history: String,
    bodies: String,
    channel: String,
}

/// Why a book could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// Redis did not answer, or with an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A body beyond [`MAX_BODY`].
    #[error("{bytes} bytes are more than the {} MiB that a version may have", MAX_BODY >> 20)]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The key that names the newest version holds something else.
    #[error("the key of the newest version is damaged: it holds what no push has written")]
    BadHead,
    /// A version that is named is not there.
    #[error("there is no version {number}")]
    NoVersion {
        /// Its number.
        number: u64,
    },
    /// A version that is not what was pushed.
    #[error("version {number} is not what was pushed: {reason}")]
    Damaged {
        /// Its number.
        number: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

// === impl RuleBook ===

impl RuleBook {
    /// The book of this name. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// If the files of TLS are of no use.
    pub fn new(config: &ClientConfig, name: &str) -> Result<Self, TlsError> {
        // Also for probes: a server that was gone is back when it answers one within that time. The log has no
        // lines of its breaker, because the caller logs when it cannot look for new versions.
        let config = ClientConfig {
            timeout: Some(TIMEOUT),
            changes: Changes::Untold,
            ..config.clone()
        };
        Ok(Self {
            client: Client::new(&config)?.with_timeout(TIMEOUT),
            keys: Keys::new(name),
            push: Script::new(include_str!("../scripts/push_rules.lua")),
        })
    }

    /// What is newest; `None` if nothing was pushed yet.
    pub async fn head(&self) -> Result<Option<Head>, BookError> {
        let newest = &self.keys.newest;
        let get = |command: &mut Command<'_>| {
            command.arg("GET").arg(newest);
        };
        let reply = self.client.call(self.route(), get).await?;
        Ok(reply.text()?.map(Head::new))
    }

    /// The version of this number.
    pub async fn fetch(&self, number: u64) -> Result<Version, BookError> {
        let line = self.field(&self.keys.history, number);
        let body = self.field(&self.keys.bodies, number);
        let (line, body) = tokio::join!(line, body);
        let (line, body) = (line?, body?);
        let (Some(line), Some(body)) = (line.text()?, body.text()?) else {
            return Err(BookError::NoVersion { number });
        };
        let damaged = |reason| BookError::Damaged { number, reason };
        let entry = Entry::read(number, line).ok_or(damaged("its line in the history is none"))?;
        if body.len() > MAX_BODY {
            return Err(damaged("it is larger than a version may be"));
        }
        if entry.digest != Digest::of(body) {
            return Err(damaged("its digest is another"));
        }
        let body = body.to_vec();
        Ok(Version { entry, body })
    }

    /// The version of this number, if it has this digest: that which a head speaks of.
    pub async fn fetch_exactly(&self, number: u64, digest: Digest) -> Result<Version, BookError> {
        let version = self.fetch(number).await?;
        if version.entry.digest != digest {
            let reason = "its digest is another than that of the newest version";
            return Err(BookError::Damaged { number, reason });
        }
        Ok(version)
    }

    /// All versions that are kept.
    pub async fn history(&self) -> Result<History, BookError> {
        let key = &self.keys.history;
        let get_all = |command: &mut Command<'_>| {
            command.arg("HGETALL").arg(key);
        };
        let reply = self.client.call(self.route(), get_all).await?;
        Ok(History::read(reply.array()?))
    }

    /// Makes a draft the newest version, in one step, and gives every node notice.
    pub async fn push(&self, draft: Draft<'_>, expected: Expected) -> Result<Pushed, BookError> {
        let Draft { body, about } = draft;
        if body.len() > MAX_BODY {
            return Err(BookError::TooLarge { bytes: body.len() });
        }
        let expected = match expected {
            Expected::Any => String::new(),
            Expected::Nothing => "0".to_owned(),
            Expected::Newest(number) => number.to_string(),
        };
        let keys = &self.keys;
        let digest = Digest::of(body).to_string();
        let arguments = |command: &mut Command<'_>| {
            command.number(3);
            command
                .arg(&keys.newest)
                .arg(&keys.history)
                .arg(&keys.bodies);
            command.arg(&digest).number(body.len()).arg(about).arg(body);
            command.arg(&expected).number(KEPT).arg(&keys.channel);
        };
        let reply = self
            .client
            .eval(self.route(), &self.push, arguments)
            .await?;
        read_pushed(&reply).ok_or_else(|| reply.unexpected().into())
    }

    /// Listens for notices that there is a new version.
    pub async fn listen(&self) -> Result<Notices, NoticesLost> {
        Notices::listen(&self.client, self.route(), &self.keys.channel).await
    }

    async fn field(&self, key: &str, number: u64) -> Result<Reply, StoreError> {
        let get = |command: &mut Command<'_>| {
            command.arg("HGET").arg(key).number(number);
        };
        self.client.call(self.route(), get).await
    }

    /// The server that has the keys of this book.
    fn route(&self) -> Route<'_> {
        Route::Key(self.keys.newest.as_bytes())
    }
}

// === impl History ===

impl History {
    /// Reads numbers, and after each its line.
    pub(crate) fn read(mut fields: Array<'_>) -> Self {
        let mut history = Self::default();
        while let (Some(number), Some(line)) = (fields.next(), fields.next()) {
            match read_entry(&number, &line) {
                Some(entry) => history.entries.push(entry),
                None => history.unreadable += 1,
            }
        }
        let newest_first = |entry: &Entry| std::cmp::Reverse(entry.number);
        history.entries.sort_by_key(newest_first);
        history
    }
}

// === impl Keys ===

impl Keys {
    fn new(name: &str) -> Self {
        let key = |part: &str| format!("tg1:{{rules:{name}}}:{part}");
        Self {
            newest: key("newest"),
            history: key("history"),
            bodies: key("bodies"),
            channel: key("notices"),
        }
    }
}

fn read_entry(number: &Value<'_>, line: &Value<'_>) -> Option<Entry> {
    Entry::read(number.str()?.parse().ok()?, line.text()?)
}

pub(crate) fn read_pushed(reply: &Reply) -> Option<Pushed> {
    let mut parts = reply.array().ok()?;
    let word = parts.next()?.str()?;
    let mut number = || u64::try_from(parts.next()?.integer()?).ok();
    let (number, before) = (number()?, number()?);
    // Versions are counted from 1.
    let version = |number: u64| (number > 0).then_some(number);
    match word {
        "pushed" => Some(Pushed::New {
            number,
            before: version(before),
        }),
        "same" => Some(Pushed::Same { number }),
        "overtaken" => Some(Pushed::Overtaken {
            newest: version(number),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
