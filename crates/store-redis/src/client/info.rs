//! What a server says of itself.

use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::ServerInfo;

use super::wire::Reply;

/// Reads the answer to INFO. What is not there is 0.
pub(super) fn read(reply: &Reply) -> Result<ServerInfo, StoreError> {
    let text = reply.text()?.ok_or_else(|| reply.unexpected())?;
    Ok(parse(&String::from_utf8_lossy(text)))
}

fn parse(text: &str) -> ServerInfo {
    let mut info = ServerInfo::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let number = || value.parse().unwrap_or_default();
        match name {
            "used_memory" => info.used_memory = number(),
            "maxmemory" => info.max_memory = Some(number()).filter(|&most| most > 0),
            "used_cpu_user" | "used_cpu_sys" => info.cpu = info.cpu.saturating_add(seconds(value)),
            "connected_clients" => info.clients = number(),
            "evicted_keys" => info.evicted_keys = number(),
            _ => {}
        }
    }
    info
}

/// Seconds with a fraction of six digits.
fn seconds(text: &str) -> Duration {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros = format!("{fraction:0<6}");
    let micros = micros.get(..6).and_then(|micros| micros.parse().ok());
    let micros = Duration::from_micros(micros.unwrap_or_default());
    Duration::from_secs(whole.parse().unwrap_or_default()).saturating_add(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_and_the_rest_left_alone() {
        let text = "# Server\r\nredis_version:7.2.4\r\nused_memory:1234\r\nmaxmemory:0\r\n\
                    used_cpu_sys:1.500000\r\nused_cpu_user:0.25\r\nused_cpu_sys_children:9.0\r\n\
                    connected_clients:3\r\nevicted_keys:x\r\nanything\r\n";
        let info = parse(text);
        assert_eq!((info.used_memory, info.max_memory), (1234, None));
        assert_eq!(info.cpu, Duration::from_millis(1750));
        assert_eq!((info.clients, info.evicted_keys), (3, 0));
        assert_eq!(parse("maxmemory:5").max_memory, Some(5));
    }

    #[test]
    fn no_number_is_too_large() {
        let text = format!(
            "used_cpu_sys:{0}.999999\r\nused_cpu_user:{0}.999999\r\n",
            u64::MAX
        );
        assert_eq!(parse(&text).cpu, Duration::MAX);
    }
}
