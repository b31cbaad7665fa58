//! A plain connection to Redis: asks and waits, to look at the server and as the shortest round trip
//! there is.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What Redis answers, as far as anybody here asks.
pub enum Reply {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Nothing.
    Nothing,
}

/// One connection.
pub struct Bare {
    stream: BufReader<TcpStream>,
}

/// The longest text that is taken in.
const MOST_BYTES: usize = 1 << 20;

// === impl Bare ===

impl Bare {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        Ok(Self { stream })
    }

    /// One command and its answer.
    pub fn ask(&mut self, words: &[&str]) -> Result<Reply, Box<dyn Error>> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            write!(command, "${}\r\n{word}\r\n", word.len())?;
        }
        self.stream.get_mut().write_all(command.as_bytes())?;
        self.reply(words)
    }

    /// How many commands Redis has run, but for those that only look at it.
    pub fn commands(&mut self) -> Result<f64, Box<dyn Error>> {
        let text = self.text(&["INFO", "commandstats"])?;
        let mut calls = 0.0;
        for line in text.lines() {
            let Some((name, rest)) = line
                .strip_prefix("cmdstat_")
                .and_then(|it| it.split_once(':'))
            else {
                continue;
            };
            // What a script calls is counted too; a node sends none of these by itself.
            let is_sent = matches!(name, "eval" | "evalsha" | "fcall" | "script|load");
            if let Some(n) = rest
                .strip_prefix("calls=")
                .and_then(|it| it.split(',').next())
                && is_sent
            {
                calls += n.parse::<f64>()?;
            }
        }
        Ok(calls)
    }

    /// How long the shortest command takes, in seconds.
    pub fn ping(&mut self) -> Result<Duration, Box<dyn Error>> {
        let begun = Instant::now();
        self.ask(&["PING"])?;
        Ok(begun.elapsed())
    }

    /// A command that is answered by a text.
    pub fn text(&mut self, words: &[&str]) -> Result<String, Box<dyn Error>> {
        match self.ask(words)? {
            Reply::Text(text) => Ok(text),
            Reply::Number(_) | Reply::Nothing => Err(format!("{words:?} gave no text").into()),
        }
    }

    /// A command that is answered by a number.
    pub fn number(&mut self, words: &[&str]) -> Result<f64, Box<dyn Error>> {
        match self.ask(words)? {
            Reply::Number(number) => Ok(number),
            Reply::Text(_) | Reply::Nothing => Err(format!("{words:?} gave no number").into()),
        }
    }

    fn reply(&mut self, words: &[&str]) -> Result<Reply, Box<dyn Error>> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("+", text)) => Ok(Reply::Text(text.to_owned())),
            Some((":", number)) => Ok(Reply::Number(number.parse()?)),
            Some(("$", "-1")) => Ok(Reply::Nothing),
            Some(("$", length)) => {
                let length = length.parse::<usize>()?.min(MOST_BYTES);
                let mut text = vec![0; length + 2];
                self.stream.read_exact(&mut text)?;
                text.truncate(length);
                Ok(Reply::Text(String::from_utf8_lossy(&text).into_owned()))
            }
            _ => Err(format!("{words:?}: {line}").into()),
        }
    }
}
