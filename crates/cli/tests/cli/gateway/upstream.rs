//! A server behind the gateway that remembers what it was asked and answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server on a free port, until the test ends. A request says by its header `x-answer` which status it wants; 200, if not.
pub(crate) struct Upstream {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

// === impl Upstream ===

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let log = Arc::clone(&log);
                // A gateway that goes away in the middle is no fault of the test.
                thread::spawn(move || drop(answer_all(stream.unwrap(), &log)));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The method and target of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer_all(stream: TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let request = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
        let (mut status, mut length) = ("200".to_owned(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            match header.trim_end().split_once(": ") {
                None => break,
                Some(("x-answer", value)) => value.clone_into(&mut status),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
            }
        }
        reader.by_ref().take(length).read_to_end(&mut Vec::new())?;
        log.lock().unwrap().push(request);
        let head = format!("HTTP/1.1 {status} Told\r\nContent-Length: 2\r\n\r\nok");
        writer.write_all(head.as_bytes())?;
    }
}
