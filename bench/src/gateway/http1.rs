//! One GET over HTTP/1.1, by hand: a client that costs little and hides nothing.

use std::error::Error;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::contenders::ANSWER;

/// A request as wrk sends it.
const REQUEST: &[u8] = b"GET /api/things?page=2 HTTP/1.1\r\nHost: api.example\r\nUser-Agent: wrk\r\nAccept: */*\r\nX-User: u0000000\r\n\r\n";

/// Room for a whole answer.
const ROOM: usize = 2 * ANSWER;

/// Sends a GET and reads the whole answer, which must be the upstream's.
pub async fn get<I>(stream: &mut I) -> Result<(), Box<dyn Error>>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(REQUEST).await?;
    stream.flush().await?;
    let mut answer = [0; ROOM];
    let mut n_read = 0;
    loop {
        let n_new = stream.read(&mut answer[n_read..]).await?;
        if n_new == 0 {
            return Err("the connection ended within an answer".into());
        }
        n_read += n_new;
        if is_complete(&answer[..n_read])? {
            return Ok(());
        }
    }
}

/// Whether the bytes are a whole answer.
fn is_complete(bytes: &[u8]) -> Result<bool, Box<dyn Error>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(false);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    if !head.starts_with("HTTP/1.1 200 ") || length != Some(ANSWER) {
        return Err(format!("not the upstream's answer: {head}").into());
    }
    Ok(bytes.len() >= end + 4 + ANSWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, n_body: usize, expected: Option<bool>) {
        let bytes = [head.as_bytes(), &vec![b'x'; n_body]].concat();
        assert_eq!(is_complete(&bytes).ok(), expected, "{head}");
    }

    #[test]
    fn an_answer_ends_with_its_body() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n";
        check("HTTP/1.1 200 OK\r\nContent-", 0, Some(false));
        check(head, 1_023, Some(false));
        check(head, 1_024, Some(true));
        check(
            "HTTP/1.1 429 No\r\ncontent-length: 1024\r\n\r\n",
            1_024,
            None,
        );
        check("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", 7, None);
    }
}
