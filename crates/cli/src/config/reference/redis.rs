//! The reference's Redis, as a URL of ours.

use super::super::raw::{Written, scalar};
use super::{Reference, StandIn, Variable, written};

/// What sort of Redis the reference is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisType {
    Single,
    Sentinel,
    Cluster,
}

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

    fn engine(&self) -> Option<Written> {
        let name = "REDIS_URL";
        let Variable { value, span } = self.set.get(name)?;
        // It would not have been asked.
        if self.not("BACKEND_TYPE", "redis").is_some() {
            return None;
        }
        Some(written(
            "store.engine",
            name,
            scalar(*span, self.url(value)),
        ))
    }

    fn url(&self, servers: &str) -> String {
        let word = self.value("REDIS_TYPE").unwrap_or("single");
        let scheme = if self.is_on("REDIS_TLS") {
            "rediss"
        } else {
            "redis"
        };
        let (scheme, servers) = match servers.split_once("://") {
            Some(("redis", servers)) => (scheme, servers),
            Some(("rediss", servers)) => ("rediss", servers),
            // One of ours says it all.
            Some(_) => return servers.to_owned(),
            None => (scheme, servers),
        };
        let auth = self.value("REDIS_AUTH");
        // What the URL says itself is meant for this Redis.
        let auth = auth.filter(|_| !servers.contains('@'));
        let login = auth.map_or(String::new(), login);
        // A word that is no type is refused in its place.
        match RedisType::of(word).unwrap_or(RedisType::Single) {
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
            Some(word) => word.eq_ignore_ascii_case("unix"),
            None => url.starts_with('/'),
        }
    }
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
