//! The reference's Redis, as a URL of ours.

use super::super::raw::{Origin, Written, scalar};
use super::super::reader::{Known, origin_of};
use super::{Reference, StandIn, Variable, written};

/// What sort of Redis the reference is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisType {
    Single,
    Sentinel,
    Cluster,
}

/// By what the reference reaches a single Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    Tcp,
    Unix,
}

/// The setting that its URL, and all that goes into it, makes.
pub(super) const ENGINE: &str = "store.engine";

/// The variable that begins it all.
const URL: &str = "REDIS_URL";

// === impl RedisType ===

impl RedisType {
    /// The type of a word, if it is one.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "single" => Some(Self::Single),
            "sentinel" => Some(Self::Sentinel),
            "cluster" => Some(Self::Cluster),
            _ => None,
        }
    }
}

// === impl Socket ===

impl Socket {
    /// The socket of a word, if it is one.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "tcp" | "tcp4" | "tcp6" => Some(Self::Tcp),
            "unix" => Some(Self::Unix),
            _ => None,
        }
    }
}

// === impl Reference ===

impl Reference {
    /// The store in Redis, where the reference would count in it.
    pub(super) fn redis(&self) -> Vec<Written> {
        if self.stand_in() == StandIn::No {
            return Vec::new();
        }
        let plain = [
            ("store.tls.ca", "REDIS_TLS_CACERT"),
            ("store.tls.cert", "REDIS_TLS_CLIENT_CERT"),
            ("store.tls.key", "REDIS_TLS_CLIENT_KEY"),
        ];
        let plain = plain.into_iter().filter_map(|(path, name)| {
            let Variable { value, span } = self.set.get(name)?;
            Some(written(path, name, scalar(*span, value)))
        });
        self.engine().into_iter().chain(plain).collect()
    }

    /// Whether a variable has a part in the URL of the store.
    pub(super) fn is_in_url(&self, name: &str, known: &[Known]) -> bool {
        let is_asked =
            matches!(origin_of(known, ENGINE), Some(Origin::Environment(by)) if by == URL);
        let is_whole = || self.value(URL).is_some_and(is_of_ours);
        is_asked && (name == URL || !is_whole())
    }

    /// Whether the reference reaches its Redis by a path.
    pub(super) fn is_by_socket(&self) -> bool {
        let is_single = self.redis_type() == RedisType::Single;
        is_single && self.value(URL).is_some_and(|url| self.is_socket(url))
    }

    fn engine(&self) -> Option<Written> {
        let Variable { value, span } = self.set.get(URL)?;
        // It would not have been asked.
        if self.not("BACKEND_TYPE", "redis").is_some() {
            return None;
        }
        Some(written(ENGINE, URL, scalar(*span, self.url(value))))
    }

    /// A word that is no type is refused in its place.
    fn redis_type(&self) -> RedisType {
        let word = self.value("REDIS_TYPE").unwrap_or("single");
        RedisType::of(word).unwrap_or(RedisType::Single)
    }

    fn url(&self, servers: &str) -> String {
        if is_of_ours(servers) {
            return servers.to_owned();
        }
        let is_encrypted = self.is_on("REDIS_TLS") || servers.contains("rediss://");
        let scheme = if is_encrypted { "rediss" } else { "redis" };
        // Each server of a Cluster may be written as a URL.
        let servers = &servers.replace("rediss://", "").replace("redis://", "");
        let auth = self.value("REDIS_AUTH");
        // What the URL says itself is meant for this Redis.
        let auth = auth.filter(|_| !servers.contains('@'));
        let login = auth.map_or(String::new(), login);
        match self.redis_type() {
            RedisType::Single if self.is_socket(servers) => {
                format!("redis+unix://{login}{servers}")
            }
            RedisType::Single => format!("{scheme}://{login}{servers}"),
            RedisType::Cluster => format!("{scheme}+cluster://{login}{servers}"),
            RedisType::Sentinel => {
                let (master, sentinels) = servers.split_once(',').unwrap_or((servers, ""));
                let query = self
                    .value("REDIS_SENTINEL_AUTH")
                    .map_or(String::new(), sentinel_login);
                format!("{scheme}+sentinel://{login}{sentinels}/{master}{query}")
            }
        }
    }

    /// Whether a single Redis is reached by a path. The reference takes every URL for one where its
    /// type of socket is not set, so only those that are one can have worked.
    fn is_socket(&self, url: &str) -> bool {
        match self.value("REDIS_SOCKET_TYPE") {
            // A word that is no socket is refused in its place.
            Some(word) => Socket::of(word) == Some(Socket::Unix),
            None => url.starts_with('/'),
        }
    }
}

/// Whether it is a URL that the reference does not know, and that says it all.
fn is_of_ours(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme != "redis" && scheme != "rediss")
}

/// `user:password` or a password alone, as a URL has it.
fn login(auth: &str) -> String {
    match auth.split_once(':') {
        Some((user, password)) => format!("{}:{}@", encoded(user), encoded(password)),
        None => format!(":{}@", encoded(auth)),
    }
}

/// The same for Sentinels.
fn sentinel_login(auth: &str) -> String {
    match auth.split_once(':') {
        Some((user, password)) => format!(
            "?sentinel_user={}&sentinel_password={}",
            encoded(user),
            encoded(password)
        ),
        None => format!("?sentinel_password={}", encoded(auth)),
    }
}

/// With `%` for all that means something in a URL.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
