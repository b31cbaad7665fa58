//! A small HTTP/1.1 client: one connection that is kept open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No caller waits longer than this.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to one node; opened when it is needed.
#[derive(Debug, Default)]
pub struct Connection {
    stream: Option<(SocketAddr, TcpStream)>,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

// === impl Connection ===

impl Connection {
    /// Sends a request and waits for its answer. After an error the connection is gone.
    pub fn post(&mut self, address: SocketAddr, path: &str, body: &str) -> io::Result<Response> {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.exchange(address, &text)
    }

    /// Reads a page.
    pub fn get(&mut self, address: SocketAddr, path: &str) -> io::Result<Response> {
        self.exchange(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        )
    }

    /// Opens the connection ahead of the first request.
    pub fn open(&mut self, address: SocketAddr) -> io::Result<()> {
        if self.stream.as_ref().is_none_or(|(to, _)| *to != address) {
            let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            self.buffer.clear();
            self.stream = Some((address, stream));
        }
        Ok(())
    }

    fn exchange(&mut self, address: SocketAddr, text: &str) -> io::Result<Response> {
        self.open(address)?;
        let response = self.try_exchange(text);
        let closes = !matches!(&response, Ok((_, false)));
        if closes {
            self.stream = None;
        }
        response.map(|(response, _)| response)
    }

    /// The answer, and whether the server closes the connection.
    fn try_exchange(&mut self, text: &str) -> io::Result<(Response, bool)> {
        let Some((_, stream)) = &mut self.stream else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        stream.write_all(text.as_bytes())?;
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            read_more(stream, &mut self.buffer)?;
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).to_ascii_lowercase();
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let length = |line: &str| line.strip_prefix("content-length:")?.trim().parse().ok();
        let length: usize = text.lines().find_map(length).unwrap_or(0);
        let closes = text.contains("\r\nconnection: close");
        let end = head + 4 + length;
        while self.buffer.len() < end {
            read_more(stream, &mut self.buffer)?;
        }
        let body = self.buffer[head + 4..end].to_vec();
        self.buffer.drain(..end);
        Ok((Response { status, body }, closes))
    }
}

fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 16 * 1024];
    match stream.read(&mut part)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => {
            buffer.extend_from_slice(&part[..length]);
            Ok(())
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|part| part == pattern)
}
