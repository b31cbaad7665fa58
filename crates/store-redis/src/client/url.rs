//! A deployment of Redis in one line.

mod query;

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use super::Address;
use super::config::{ClientConfig, Credentials, Deployment, TlsOptions};

use query::{Query, percent_decoded};

/// What is wrong with a URL of Redis. No text of it has the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No scheme that is known.
    #[error(
        "{0:?} is no way to reach Redis; write redis://HOST:PORT, rediss://, redis+unix:///PATH, redis+sentinel:// or redis+cluster://"
    )]
    UnknownScheme(String),
    /// No host where one is needed.
    #[error("there is no host; write HOST:PORT after the two slashes")]
    NoHost,
    /// A host that is none.
    #[error("{0:?} is no HOST:PORT; an IPv6 address goes in brackets, as in [::1]:6379")]
    BadHost(String),
    /// Several hosts where one is meant.
    #[error(
        "there are several hosts; for a Cluster write redis+cluster://, for Sentinels redis+sentinel://"
    )]
    SeveralHosts,
    /// No socket.
    #[error(
        "there is no path of a socket; write three slashes, as in redis+unix:///run/redis.sock"
    )]
    NoSocket,
    /// A user without a password.
    #[error("a user without a password; write USER:PASSWORD@ or :PASSWORD@")]
    NoPassword,
    /// No master.
    #[error(
        "there is no name of a master; write it after the Sentinels, as in redis+sentinel://HOST:26379/mymaster"
    )]
    NoMaster,
    /// A database that is no number.
    #[error("{0:?} is no number of a database")]
    BadDatabase(String),
    /// A database where there is only one.
    #[error("a Cluster has no databases but 0")]
    DatabaseOfCluster,
    /// A path that means nothing.
    #[error("{0:?} is too much; only the number of a database may come after the host")]
    BadPath(String),
    /// A password with a `?` in it.
    #[error("a ? in a password must be written %3F")]
    BareMark,
    /// A `%` that two hexadecimal digits do not follow, or bytes that are no UTF-8.
    #[error("a % must be written %25; two hexadecimal digits follow any other, and make up UTF-8")]
    BadPercent,
    /// A parameter that means nothing here.
    #[error("{name:?} is no parameter of this URL; there are: {known}")]
    UnknownParameter {
        /// Its name.
        name: String,
        /// Those that there are.
        known: &'static str,
    },
    /// A parameter whose value makes no sense.
    #[error("{name} is wrong; write {expected}")]
    BadParameter {
        /// Its name.
        name: &'static str,
        /// How it is written.
        expected: &'static str,
    },
    /// A parameter of encrypted connections.
    #[error("{name} is for encrypted connections; write {scheme} for one")]
    NotEncrypted {
        /// Its name.
        name: &'static str,
        /// The scheme that it goes with.
        scheme: &'static str,
    },
}

/// What a scheme stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Single,
    Unix,
    Sentinel,
    Cluster,
}

/// The parts of a URL, still as they are written.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    credentials: Option<&'a str>,
    hosts: &'a str,
    /// Without the slash before it.
    path: Option<&'a str>,
}

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

// === impl ClientConfig ===

impl ClientConfig {
    /// Reads a URL:
    ///
    /// - `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, encrypted `rediss://`
    /// - `redis+unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]`
    /// - `redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT],…/MASTER[/DATABASE]`, encrypted `rediss+sentinel://`;
    ///   `?sentinel_user=` and `?sentinel_password=` are for the Sentinels
    /// - `redis+cluster://[[USER]:PASSWORD@]HOST[:PORT],…`, encrypted `rediss+cluster://`
    ///
    /// All take `?timeout=50ms` and `?min_timeout=5ms` (of a call) and `?connect_timeout=1s`; encrypted ones `?ca=FILE`, `?cert=FILE`
    /// and `?key=FILE` (PEM), and `?insecure=true`. Whatever has a meaning in a URL is written as `%XX`.
    pub fn from_url(url: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        let (kind, tls) = kind(scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut query = Query::parse(query)?;
        let parts = Parts::of(rest);
        let mut config = match kind {
            Kind::Single => single(parts)?,
            Kind::Unix => unix(parts)?,
            Kind::Sentinel => sentinel(parts, &mut query)?,
            Kind::Cluster => cluster(parts)?,
        };
        config.credentials = parts.credentials.map(credentials).transpose()?;
        config.tls = tls;
        settings(&mut config, &mut query)?;
        query.finish()?;
        Ok(config)
    }
}

// === impl Parts ===

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Self {
        // A password may have slashes in it, for those who forgot to write %2F.
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let (hosts, path) = match rest.split_once('/') {
            Some((hosts, path)) => (hosts, Some(path)),
            None => (rest, None),
        };
        Self {
            credentials,
            hosts,
            path,
        }
    }

    /// All hosts, of which there is at least one.
    fn addresses(self, default_port: u16) -> Result<Vec<Address>, UrlError> {
        if self.hosts.is_empty() {
            return Err(UrlError::NoHost);
        }
        let hosts = self.hosts.split(',');
        hosts.map(|host| address(host, default_port)).collect()
    }
}

fn kind(scheme: &str) -> Result<(Kind, Option<TlsOptions>), UrlError> {
    let plain = |kind| Ok((kind, None));
    let encrypted = |kind| Ok((kind, Some(TlsOptions::default())));
    match scheme {
        "redis" | "valkey" => plain(Kind::Single),
        "rediss" | "valkeys" => encrypted(Kind::Single),
        "redis+unix" | "unix" => plain(Kind::Unix),
        "redis+sentinel" => plain(Kind::Sentinel),
        "rediss+sentinel" => encrypted(Kind::Sentinel),
        "redis+cluster" => plain(Kind::Cluster),
        "rediss+cluster" => encrypted(Kind::Cluster),
        // It may be a password that somebody put first.
        _ => Err(UrlError::UnknownScheme(
            scheme
                .chars()
                .take_while(|&c| c != ':' && c != '@')
                .collect(),
        )),
    }
}

fn single(parts: Parts<'_>) -> Result<ClientConfig, UrlError> {
    let mut addresses = parts.addresses(REDIS_PORT)?;
    match addresses.pop() {
        Some(address) if addresses.is_empty() => {
            let mut config = ClientConfig::new(Deployment::Single(address));
            config.database = database(parts.path)?;
            Ok(config)
        }
        _ => Err(UrlError::SeveralHosts),
    }
}

fn unix(parts: Parts<'_>) -> Result<ClientConfig, UrlError> {
    match parts.path {
        Some(path) if parts.hosts.is_empty() && !path.is_empty() => {
            let path = PathBuf::from(format!("/{}", percent_decoded(path)?));
            let address = Address::Unix(path.into());
            Ok(ClientConfig::new(Deployment::Single(address)))
        }
        _ => Err(UrlError::NoSocket),
    }
}

fn sentinel(parts: Parts<'_>, query: &mut Query) -> Result<ClientConfig, UrlError> {
    let path = parts.path.filter(|path| !path.is_empty());
    let path = path.ok_or(UrlError::NoMaster)?;
    let (master, number) = match path.split_once('/') {
        Some((master, number)) => (master, Some(number)),
        None => (path, None),
    };
    let user = query.take("sentinel_user");
    let credentials = match query.take("sentinel_password") {
        Some(password) => Some(Credentials {
            user,
            password,
            password_file: None,
        }),
        None if user.is_some() => return Err(UrlError::NoPassword),
        None => None,
    };
    let mut config = ClientConfig::new(Deployment::Sentinel {
        sentinels: parts.addresses(SENTINEL_PORT)?,
        master: percent_decoded(master)?,
        credentials,
    });
    config.database = database(number)?;
    Ok(config)
}

fn cluster(parts: Parts<'_>) -> Result<ClientConfig, UrlError> {
    if database(parts.path)? != 0 {
        return Err(UrlError::DatabaseOfCluster);
    }
    let seeds = parts.addresses(REDIS_PORT)?;
    Ok(ClientConfig::new(Deployment::Cluster { seeds }))
}

fn settings(config: &mut ClientConfig, query: &mut Query) -> Result<(), UrlError> {
    if let Some(number) = query.take("db") {
        if matches!(config.deployment, Deployment::Cluster { .. }) && number != "0" {
            return Err(UrlError::DatabaseOfCluster);
        }
        config.database = database(Some(&number))?;
    }
    config.timeout = query.take_duration("timeout")?;
    config.min_timeout = query.take_duration("min_timeout")?;
    config.connect_timeout = query.take_duration("connect_timeout")?;
    query.take_tls(config.tls.as_mut())
}

fn credentials(text: &str) -> Result<Credentials, UrlError> {
    let (user, password) = text.split_once(':').ok_or(UrlError::NoPassword)?;
    let user = percent_decoded(user)?;
    Ok(Credentials {
        user: (!user.is_empty()).then_some(user),
        password: percent_decoded(password)?,
        password_file: None,
    })
}

fn database(path: Option<&str>) -> Result<u32, UrlError> {
    match path {
        None | Some("") => Ok(0),
        Some(path) if path.contains('/') => Err(UrlError::BadPath(path.to_owned())),
        Some(path) => path
            .parse()
            .map_err(|_| UrlError::BadDatabase(path.to_owned())),
    }
}

fn address(text: &str, default_port: u16) -> Result<Address, UrlError> {
    let bad = || UrlError::BadHost(shown(text));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(bad)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| bad())?;
            (
                host,
                port.strip_prefix(':').or((!port.is_empty()).then_some("")),
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None => default_port,
        Some(port) => port.parse::<NonZeroU16>().map_err(|_| bad())?.get(),
    };
    let host = percent_decoded(host)?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(bad());
    }
    Ok(Address::tcp(&host, port))
}

/// A host that is none, without what may be a password that somebody forgot to end in `@`.
fn shown(text: &str) -> String {
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') && port.parse::<u32>().is_err() => {
            format!("{host}:…")
        }
        _ => text.to_owned(),
    }
}

/// A time with its unit.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok()?;
    let duration = match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return None,
    };
    // An hour is beyond anything that makes sense, and within what can be added to a time.
    (Duration::from_millis(1)..=Duration::from_hours(1))
        .contains(&duration)
        .then_some(duration)
}

#[cfg(test)]
mod tests;
