//! An upstream that speaks bytes.

use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};

/// A server whose connections a function serves. Ends when it is dropped.
pub(super) struct BytesServer {
    pub(super) url: String,
    task: JoinHandle<()>,
}

impl BytesServer {
    /// Ends it. From then on nobody listens at its port.
    pub(super) async fn stop(mut self) {
        self.task.abort();
        drop((&mut self.task).await);
    }

    pub(super) async fn start<S, F>(serve: S) -> Self
    where
        S: Fn(BytesConnection) -> F + 'static,
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serve = Rc::new(serve);
        let accepting = spawn_local(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let connection = BytesConnection {
                    stream,
                    number,
                    buffer: Vec::new(),
                };
                spawn_local(serve(connection));
            }
        });
        Self {
            url,
            task: accepting,
        }
    }
}

impl Drop for BytesServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection of a [`BytesServer`].
pub(super) struct BytesConnection {
    pub(super) stream: TcpStream,
    /// Its place among the connections of the server.
    pub(super) number: usize,
    buffer: Vec<u8>,
}

impl BytesConnection {
    /// The head of the next request, or `None` at the end of the connection.
    pub(super) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return Some(String::from_utf8(head).unwrap());
            }
            let n_read = self.stream.read_buf(&mut self.buffer).await.unwrap_or(0);
            if n_read == 0 {
                return None;
            }
        }
    }

    /// A body of this many bytes, or `None` if the connection ends before.
    pub(super) async fn body(&mut self, n_bytes: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < n_bytes {
            let n_read = self.stream.read_buf(&mut self.buffer).await.unwrap_or(0);
            if n_read == 0 {
                return None;
            }
        }
        Some(self.buffer.drain(..n_bytes).collect())
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The other side may be gone.
        drop(self.stream.write_all(bytes.as_ref()).await);
    }

    /// Closes it with a reset instead of an end.
    pub(super) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}
