//! Where counters are kept, and how nodes share them.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_rules::document::{Code, format_duration};
use tidegate_share::SharedConfig;
use tidegate_store::{Consistency, MAX_MEMBERS};
use tidegate_store_redis::client::{ClientConfig, Credentials};

use crate::config::reader::Section;
use crate::config::value::{
    Bytes, CacheFile, Count, Engine, Name, Percentage, RedisUrl, Secret, Words,
};
use crate::failure::Failure;
use crate::rules_files;

/// Where counters are kept.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) engine: Engine,
    pub(crate) redis: Redis,
    pub(crate) sharing: Sharing,
    pub(crate) max_memory: Bytes,
    /// The folder for what a node needs to start without Redis, if there is one.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) state: State,
}

/// How the store in Redis is reached, beside its URL.
#[derive(Clone, Debug)]
pub(crate) struct Redis {
    pub(crate) name: Name,
    pub(crate) password: Option<Secret>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) tls: Tls,
    pub(crate) timeout: Duration,
    pub(crate) min_timeout: Duration,
}

/// How TLS with Redis is spoken, where its URL asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// How nodes share limits.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    pub(crate) consistency: Consistency,
    pub(crate) standby: Standby,
    pub(crate) lease_life: Duration,
    pub(crate) remember_denials: Duration,
    pub(crate) sync_interval: Duration,
    pub(crate) slack: Percentage,
    pub(crate) heartbeat: Duration,
    pub(crate) member_expiry: Duration,
    /// The fewest nodes that a limit is divided among.
    pub(crate) members: Option<u32>,
}

/// What a limit is worth on one node while Redis is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standby {
    /// Its share among the nodes that were last seen.
    #[default]
    Share,
    /// All of it.
    Whole,
}

/// Where counters outlive the process.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) file: Option<PathBuf>,
    pub(crate) interval: Duration,
}

/// The least memory that the embedded store works with.
const LEAST_MEMORY: Bytes = Bytes(1 << 20);

/// The shortest time that anything between nodes can take: less is a slip of the pen.
const LEAST_SPAN: Duration = Duration::from_millis(1);

// === impl Store ===

impl Store {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let engine = section.value(
            "engine",
            "Where counters are kept: memory, or the URL of a Redis that nodes have in common",
            Engine::Memory,
        );
        let redis = Redis::read(&mut section);
        let sharing = Sharing::read(&mut section);
        let max_memory = section.value(
            "max_memory",
            "The most memory for counters",
            Bytes(256 << 20),
        );
        if max_memory.0 < LEAST_MEMORY.0 {
            let message = format!("{max_memory} of memory are too little");
            section.fault(
                "max_memory",
                Code::BadValue,
                message,
                "the store needs at least 1MiB",
            );
        }
        let folder: Option<CacheFile> = section.optional(
            "folder",
            "Where a node keeps what it needs to start without Redis: the number of members, and what it counted \
             without Redis; or off; by default the state folder",
        );
        Self {
            engine,
            redis,
            sharing,
            max_memory,
            folder: match folder {
                Some(CacheFile::Off) => None,
                Some(CacheFile::At(folder)) => Some(folder),
                None => Some(section.state_folder().to_owned()),
            },
            state: State::read(section),
        }
    }
}

// === impl Redis ===

impl Redis {
    /// The settings of the client. What the URL says itself is meant for this Redis; the settings say what it does
    /// not.
    pub(crate) fn login(&self, url: &RedisUrl) -> Result<ClientConfig, Failure> {
        let mut config = url.config.clone();
        let written = config.credentials.take();
        let (user, password) = written.map_or((None, String::new()), |it| (it.user, it.password));
        let (password, password_file) = if password.is_empty() {
            let password = self.password()?.map(|Secret(password)| password);
            (password, self.password_file.clone())
        } else {
            (Some(password), None)
        };
        // A user may have no password, and is not to come in as the one that all others are.
        config.credentials = (user.is_some() || password.is_some()).then(|| Credentials {
            user,
            password: password.unwrap_or_default(),
            password_file,
        });
        if let Some(tls) = &mut config.tls {
            tls.ca = tls.ca.take().or_else(|| self.tls.ca.clone());
            tls.certificate = tls.certificate.take().or_else(|| self.tls.cert.clone());
            tls.key = tls.key.take().or_else(|| self.tls.key.clone());
        }
        config.timeout = config.timeout.or(Some(self.timeout));
        config.min_timeout = config.min_timeout.or(Some(self.min_timeout));
        Ok(config)
    }

    /// The password, read from its file if it is there.
    fn password(&self) -> Result<Option<Secret>, Failure> {
        let Some(path) = &self.password_file else {
            return Ok(self.password.clone());
        };
        let bytes = rules_files::read_bytes(path).map_err(|reason| Failure::NoPassword {
            path: path.clone(),
            reason,
        })?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::BadPassword)?;
        // Editors end a file with a line break, and no password does.
        let text = text.trim_end_matches(['\r', '\n']);
        Ok((!text.is_empty()).then(|| Secret(text.to_owned())))
    }

    fn read(section: &mut Section<'_, '_>) -> Self {
        let name = section.value(
            "name",
            "The name of the installation: those of other names have other counters in the same Redis",
            Name::default(),
        );
        let password = section.optional("password", "The password for Redis, if its URL has none");
        let password_file: Option<PathBuf> =
            section.optional("password_file", "A file that holds the password");
        if password.is_some() && password_file.is_some() {
            section.fault(
                "password_file",
                Code::Conflict,
                "`password` and `password_file` are both set".to_owned(),
                "keep one of them",
            );
        }
        let tls = Tls::read(section.block("tls", "How TLS with a rediss:// URL is spoken"));
        let timeout = section.value(
            "timeout",
            "The longest that a decision waits for Redis before `on_failure` answers",
            ClientConfig::TIMEOUT,
        );
        at_least(section, "timeout", timeout, LEAST_SPAN);
        let min_timeout = section.value(
            "min_timeout",
            "The shortest timeout of a decision; between the two it adapts to the time that Redis takes",
            ClientConfig::MIN_TIMEOUT.min(timeout),
        );
        at_least(section, "min_timeout", min_timeout, LEAST_SPAN);
        if min_timeout > timeout {
            section.fault(
                "min_timeout",
                Code::Conflict,
                "`min_timeout` is longer than `timeout`".to_owned(),
                "raise `timeout`, or lower `min_timeout`",
            );
        }
        Self {
            name,
            password,
            password_file,
            tls,
            timeout,
            min_timeout,
        }
    }
}

// === impl Tls ===

impl Tls {
    fn read(mut section: Section<'_, '_>) -> Self {
        let tls = Self {
            ca: section.optional(
                "ca",
                "Who signs the certificates of Redis, as PEM; by default those that the system trusts",
            ),
            cert: section.optional("cert", "Our own certificate chain as PEM, if Redis asks for one"),
            key: section.optional("key", "Its private key as PEM"),
        };
        for (name, is_alone, other) in [
            ("cert", tls.cert.is_some() && tls.key.is_none(), "key"),
            ("key", tls.key.is_some() && tls.cert.is_none(), "cert"),
        ] {
            if is_alone {
                let message = format!("`{name}` does nothing alone");
                let hint = format!("set `{other}` too");
                section.fault(name, Code::NotApplicable, message, &hint);
            }
        }
        tls
    }
}

// === impl Sharing ===

impl Sharing {
    fn read(section: &mut Section<'_, '_>) -> Self {
        let default = SharedConfig::default();
        let consistency = section.value(
            "consistency",
            "How nodes that have a Redis in common share a limit, where its rule does not say",
            Consistency::Leased,
        );
        let standby = section.value(
            "standby",
            "What a limit with `on_failure: local` is worth on each node while Redis is gone: its share among \
             the nodes, or the whole",
            Standby::Share,
        );
        let members = read_members(section);
        let remember_denials = section.value(
            "remember_denials",
            "strict, leased and split: how long a denial of Redis is answered from memory at most, so that a caller \
             over its limit costs Redis next to nothing; 0 asks Redis each time",
            default.leases.remember_denials,
        );
        let mut span = |name, about, default| {
            let span = section.value(name, about, default);
            at_least(section, name, span, LEAST_SPAN);
            span
        };
        Self {
            remember_denials,
            consistency,
            standby,
            members,
            lease_life: span(
                "lease_life",
                "leased: the longest life of a loan; a 64th of the window (a 256th of a sliding log's) where that \
                 is shorter",
                default.leases.life,
            ),
            sync_interval: span(
                "sync_interval",
                "eventual: how often nodes tell each other their totals",
                default.eventual.sync_interval,
            ),
            heartbeat: span(
                "heartbeat",
                "How often a node says that it is there",
                default.split.heartbeat,
            ),
            member_expiry: span(
                "member_expiry",
                "After how long without a word a node counts as gone",
                default.split.expiry,
            ),
            slack: section.value(
                "slack",
                "eventual: how much of what is left all nodes together may admit without telling each other",
                Percentage(default.eventual.slack),
            ),
        }
    }
}

// === impl State ===

impl State {
    fn read(mut section: Section<'_, '_>) -> Self {
        let mut state = section.block_or("state", "Where counters outlive the process", "file");
        Self {
            file: state.optional(
                "file",
                "Written while it runs and on its end, read at start",
            ),
            interval: state.value(
                "interval",
                "How often it is written",
                Duration::from_secs(10),
            ),
        }
    }
}

// === impl Words ===

impl Words for Consistency {
    const EXPECTED: &'static str = "a consistency";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("strict", Self::Strict),
        ("leased", Self::Leased),
        ("eventual", Self::Eventual),
        ("split", Self::Split),
        ("node", Self::Node),
    ];
}

impl Words for Standby {
    const EXPECTED: &'static str = "a standby";
    const WORDS: &'static [(&'static str, Self)] =
        &[("share", Self::Share), ("whole", Self::Whole)];
}

fn read_members(section: &mut Section<'_, '_>) -> Option<u32> {
    let members: Option<Count<1>> = section.optional(
        "members",
        "The fewest nodes that limits are divided among while Redis is unavailable; by default the largest number \
         that Redis counted in the last hour",
    );
    let Count(members) = members?;
    if members > MAX_MEMBERS {
        section.fault(
            "members",
            Code::BadValue,
            "there are too many `members`".to_owned(),
            &format!("write at most {MAX_MEMBERS}"),
        );
    }
    Some(members)
}

/// Refuses a span that is too short to be meant.
fn at_least(section: &mut Section<'_, '_>, name: &str, span: Duration, least: Duration) {
    if span < least {
        let message = format!("`{name}` is too short");
        let hint = format!("write at least {}", format_duration(least));
        section.fault(name, Code::BadValue, message, &hint);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::args::SettingArgs;
    use crate::config::environment::Environment;
    use crate::config::resolve;

    /// What Redis is told, by a URL and a setting.
    fn login(url: &str, password: Option<&str>) -> Option<Credentials> {
        let password = password.map(|password| ("TIDEGATE_STORE_PASSWORD", password));
        client_config(url, password).credentials
    }

    /// The settings of the client, by a URL and a variable.
    fn client_config(url: &str, variable: Option<(&str, &str)>) -> ClientConfig {
        let variables = [("TIDEGATE_STORE", url)].into_iter().chain(variable);
        let variables = variables.map(|(name, value)| (OsString::from(name), value.into()));
        let environment = Environment::read(1, variables);
        let loaded = resolve(&SettingArgs::default(), environment, None, None).expect("valid");
        let store = loaded.config.store;
        let Engine::Redis(url) = &store.engine else {
            panic!("a URL");
        };
        store.redis.login(url).expect("no file")
    }

    #[test]
    fn a_timeout_of_the_url_wins_whatever_it_is() {
        let millis = |millis| Some(Duration::from_millis(millis));
        let setting = Some(("TIDEGATE_STORE_TIMEOUT", "20ms"));
        for (url, variable, max, min) in [
            ("redis://a", None, 50, 5),
            ("redis://a", setting, 20, 5),
            ("redis://a?timeout=5ms", setting, 5, 5),
            ("redis://a?timeout=50ms", setting, 50, 5),
            ("redis://a?min_timeout=7ms", setting, 20, 7),
            (
                "redis://a",
                Some(("TIDEGATE_STORE_MIN_TIMEOUT", "9ms")),
                50,
                9,
            ),
        ] {
            let config = client_config(url, variable);
            let told = (config.timeout, config.min_timeout);
            assert_eq!(told, (millis(max), millis(min)), "{url} {variable:?}");
        }
    }

    #[test]
    fn a_password_is_that_of_the_url_else_that_of_the_setting_and_a_user_stays_who_he_is() {
        let some = |user: Option<&str>, password: &str| {
            Some(Credentials {
                user: user.map(str::to_owned),
                password: password.to_owned(),
                password_file: None,
            })
        };
        for (url, password, expected) in [
            ("redis://a", None, None),
            ("redis://:@a", None, None),
            ("redis://a", Some("set"), some(None, "set")),
            ("redis://me:@a", Some("set"), some(Some("me"), "set")),
            ("redis://me:@a", None, some(Some("me"), "")),
            ("redis://me:own@a", Some("set"), some(Some("me"), "own")),
        ] {
            assert_eq!(login(url, password), expected, "{url} {password:?}");
        }
    }
}
