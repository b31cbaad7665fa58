//! `tidegate health`: asks a running server how it is, for images that have no other program to ask with.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use crate::args::HealthArgs;
use crate::config::{self, Address, Config, Listener};
use crate::failure::Failure;
use crate::terminal;

const QUESTION: &[u8] = b"GET /healthcheck HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n\r\n";

/// How long each step may take. Docker gives up on the whole after what its HEALTHCHECK says.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer has a few headers and a word.
const MAX_ANSWER_BYTES: u64 = 4 * 1024;

/// Asks the server that the settings describe.
pub(crate) fn run(args: &HealthArgs) -> Result<ExitCode, Failure> {
    let loaded = config::load(&args.settings)?;
    let address = plain_listener(&loaded.config).ok_or(Failure::NobodyToAsk)?;
    let answer = ask(address).map_err(|reason| unwell(address, reason.to_string()))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.strip_prefix("HTTP/1.1 ");
    match status.and_then(|status| status.get(..3)) {
        Some("200") => {
            terminal::print(&format!("{body}\n"));
            Ok(ExitCode::SUCCESS)
        }
        Some(status) => Err(unwell(address, format!("it answers {status} {body}"))),
        None => Err(unwell(address, "it does not speak HTTP".to_owned())),
    }
}

/// A listener that can be asked without a certificate.
fn plain_listener(config: &Config) -> Option<&Address> {
    let is_plain =
        |listener: &&Listener| listener.tls.is_none() && listener.address != Address::Off;
    let listeners = [&config.listeners.http, &config.listeners.admin];
    let plain = listeners.into_iter().find(is_plain)?;
    Some(&plain.address)
}

fn ask(address: &Address) -> io::Result<String> {
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(&reachable(*address), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            exchange(stream)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            exchange(stream)
        }
        Address::Off => Err(io::ErrorKind::NotConnected.into()),
    }
}

fn exchange(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(QUESTION)?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Where a server that listens everywhere is reached from here.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

fn unwell(address: &Address, reason: String) -> Failure {
    Failure::Unwell {
        address: address.to_string(),
        reason,
    }
}
