//! What a server says of itself.

use std::time::Duration;

use tidegate_store::StoreError;

use super::wire::Reply;

/// The part of INFO that tells how a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its version, of Redis or of Valkey.
    pub version: String,
    /// `master` or `slave`.
    pub role: String,
    /// The bytes it has allocated.
    pub used_memory: u64,
    /// The most it may allocate; `None` if nothing bounds it.
    pub max_memory: Option<u64>,
    /// The time it has spent in its own code.
    pub cpu_user: Duration,
    /// The time that the system has spent on it.
    pub cpu_system: Duration,
    /// Its clients, we among them.
    pub clients: u64,
    /// The commands it has carried out since it began, those of scripts included.
    pub commands: u64,
    /// Keys that it threw away for want of memory: counters that were forgotten before their time.
    pub evicted_keys: u64,
}

// === impl ServerInfo ===

impl ServerInfo {
    pub(super) fn read(reply: &Reply) -> Result<Self, StoreError> {
        let text = reply.text()?.ok_or_else(|| reply.unexpected())?;
        Ok(Self::parse(&String::from_utf8_lossy(text)))
    }

    fn parse(text: &str) -> Self {
        let mut info = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let number = || value.parse().unwrap_or_default();
            match name {
                // Valkey tells the version of Redis that it was once, too.
                "valkey_version" => value.clone_into(&mut info.version),
                "redis_version" if info.version.is_empty() => value.clone_into(&mut info.version),
                "role" => value.clone_into(&mut info.role),
                "used_memory" => info.used_memory = number(),
                "maxmemory" => info.max_memory = Some(number()).filter(|&most| most > 0),
                "used_cpu_user" => info.cpu_user = seconds(value),
                "used_cpu_sys" => info.cpu_system = seconds(value),
                "connected_clients" => info.clients = number(),
                "total_commands_processed" => info.commands = number(),
                "evicted_keys" => info.evicted_keys = number(),
                _ => {}
            }
        }
        info
    }
}

/// Seconds with a fraction of six digits.
fn seconds(text: &str) -> Duration {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros = format!("{fraction:0<6}");
    let micros = micros.get(..6).and_then(|micros| micros.parse().ok());
    Duration::from_secs(whole.parse().unwrap_or_default())
        + Duration::from_micros(micros.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_and_the_rest_left_alone() {
        let text = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.0\r\nused_memory:1234\r\n\
                    maxmemory:0\r\nused_cpu_sys:1.500000\r\nused_cpu_user:0.25\r\nrole:master\r\n\
                    connected_clients:3\r\nevicted_keys:x\r\nanything\r\n";
        let info = ServerInfo::parse(text);
        assert_eq!(info.version, "8.1.0");
        assert_eq!(info.role, "master");
        assert_eq!((info.used_memory, info.max_memory), (1234, None));
        assert_eq!(info.cpu_system, Duration::from_millis(1500));
        assert_eq!(info.cpu_user, Duration::from_millis(250));
        assert_eq!((info.clients, info.evicted_keys), (3, 0));
        assert_eq!(ServerInfo::parse("maxmemory:5").max_memory, Some(5));
    }
}
