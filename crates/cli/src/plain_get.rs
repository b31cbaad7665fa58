//! A GET without TLS to a server on this machine or near it, for commands that ask a running server.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::config::Address;

/// The response of a server.
#[derive(Debug)]
pub(crate) struct PlainResponse {
    /// `None` if the server does not speak HTTP.
    pub(crate) status: Option<u16>,
    pub(crate) body: String,
}

/// How long each step may take. Docker gives up on the whole after what its HEALTHCHECK says.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest response that is read: an explained decision has a few kilobytes.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Sends a GET for `path`, with an `Authorization` header if there is one to send, and reads the response.
pub(crate) fn get(
    address: &Address,
    path: &str,
    authorization: Option<&str>,
) -> io::Result<PlainResponse> {
    let authorization =
        authorization.map_or_else(String::new, |value| format!("Authorization: {value}\r\n"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n"
    );
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(&reachable(*address), STEP_TIMEOUT)?;
            stream.set_read_timeout(Some(STEP_TIMEOUT))?;
            stream.set_write_timeout(Some(STEP_TIMEOUT))?;
            exchange(stream, &request)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(STEP_TIMEOUT))?;
            stream.set_write_timeout(Some(STEP_TIMEOUT))?;
            exchange(stream, &request)
        }
        Address::Off => Err(io::ErrorKind::NotConnected.into()),
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<PlainResponse> {
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.strip_prefix("HTTP/1.1 ");
    let status = status.and_then(|status| status.get(..3)?.parse().ok());
    Ok(PlainResponse {
        status,
        body: body.to_owned(),
    })
}

/// The address at which a server that listens everywhere is reached from here.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}
