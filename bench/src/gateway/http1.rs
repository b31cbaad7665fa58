//! GETs over HTTP/1.1, by hand: a client that costs little and hides nothing.

use std::cell::Cell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

use super::contenders::{ANSWER, CALLER};

/// Connections over which each caller sends a request.
const CONNECTIONS: usize = 64;

/// Room for a whole answer.
const ROOM: usize = 2 * ANSWER;

/// Sends one GET of each of the first `count` callers to the proxy at `address`.
pub fn get_each(address: SocketAddr, count: u64) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let next = Rc::new(Cell::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address).await?;
            let next = Rc::clone(&next);
            workers.spawn_local(async move {
                while next.get() < count {
                    let caller = next.replace(next.get() + 1);
                    let got = get(&mut stream, caller).await;
                    got.map_err(|fault| fault.to_string())?;
                }
                Ok::<(), String>(())
            });
        }
        while let Some(worker) = workers.join_next().await {
            worker??;
        }
        Ok(())
    })
}

/// Sends a GET as wrk does and reads the whole answer, which must be the upstream's.
pub async fn get<I>(stream: &mut I, caller: u64) -> Result<(), Box<dyn Error>>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let request = format!(
        "GET /api/things?page=2 HTTP/1.1\r\nHost: api.example\r\nUser-Agent: wrk\r\nAccept: */*\r\n\
         {CALLER}: u{caller:07}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
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
