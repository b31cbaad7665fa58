//! A server that runs, for the tests that ask it something.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{self, Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::program::{command, scratch};

/// Free ports for the listeners that a test does not ask.
pub(crate) const OTHERS: [&str; 4] = ["--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// A question about user 7 of the shop.
pub(crate) const USER: &str =
    r#"{"domain": "shop", "descriptors": [{"entries": [{"key": "user_id", "value": "7"}]}]}"#;

/// A running server. Killed when the test ends, however it ends.
pub(crate) struct Server {
    child: Child,
    pub(crate) banner: Vec<String>,
    pub(crate) address: String,
    errors: Lines<BufReader<ChildStderr>>,
}

// === impl Server ===

impl Server {
    /// Starts a server on a free port and reads its banner up to the line to try.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// Starts a server that finds variables in its environment.
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let args = [&["serve", "--http", "127.0.0.1:0"], &OTHERS[..], args].concat();
        let mut command = command(&args);
        command.env("STATE_DIRECTORY", state_folder());
        command.envs(variables.iter().copied());
        Self::run(command)
    }

    /// Starts a server that may not have more than this many files open; `options` are those of `ulimit`.
    pub(crate) fn start_with_files(options: &str, count: u32, args: &[&str]) -> Self {
        let server = command(&[&["serve", "--http", "127.0.0.1:0"], args].concat());
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            &format!("ulimit {options} {count}; exec \"$0\" \"$@\""),
        ]);
        shell.arg(server.get_program()).args(server.get_args());
        shell.args(OTHERS).env_clear();
        // All clients of a test have one address.
        shell.env("TIDEGATE_LIMITS_CONNECTIONS_PER_ADDRESS", "4096");
        Self::run(shell)
    }

    /// Runs a server and reads its banner up to the line to try.
    pub(crate) fn run(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut banner = Vec::new();
        while !banner
            .last()
            .is_some_and(|line: &String| line.contains("curl "))
        {
            banner.push(lines.next().expect("a banner with a line to try"));
        }
        let address = value(&banner, "listening").replace("http://", "");
        let address = address.split(' ').next().unwrap_or_default().to_owned();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            banner,
            address,
            errors,
        }
    }

    /// Posts `body` to `/json` and gives the whole answer.
    pub(crate) fn ask(&self, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head =
            format!("POST /json HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Where gRPC is spoken.
    pub(crate) fn grpc_address(&self) -> String {
        let of_grpc = |line: &String| Some(line.split_once("grpc://")?.1.to_owned());
        self.banner
            .iter()
            .find_map(of_grpc)
            .expect("a listener of gRPC")
    }

    /// Where operators are answered.
    pub(crate) fn admin_address(&self) -> String {
        let of_admin = |line: &String| {
            Some(
                line.split_once("http://")?
                    .1
                    .strip_suffix(" (admin)")?
                    .to_owned(),
            )
        };
        self.banner
            .iter()
            .find_map(of_admin)
            .expect("an admin listener")
    }

    /// Sends `line`, such as `GET /metrics`, to the admin listener and gives the whole answer.
    pub(crate) fn operate(&self, line: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.admin_address()).unwrap();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn stop(self, signal: &str) -> ExitStatus {
        self.send(signal);
        self.wait()
    }

    /// Waits until it has ended.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills it, and gives the rest of its log.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.errors.by_ref().map(Result::unwrap).collect()
    }

    /// The lines of its log up to the one that is `last`.
    pub(crate) fn log_until(&mut self, last: impl Fn(&String) -> bool) -> Vec<String> {
        let mut log = Vec::new();
        while !log.last().is_some_and(&last) {
            log.push(self.errors.next().unwrap().unwrap());
        }
        log
    }

    /// The next line of its log that has `text` in it.
    pub(crate) fn next_line(&mut self, text: &str) -> String {
        let mut lines = self.errors.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains(text)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A state folder of its own for each server: what another one on the same port left is not for this one.
fn state_folder() -> PathBuf {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    scratch(&format!("state_{}_{number}", process::id()))
}

/// The value of a line of the banner.
pub(crate) fn value<'a>(banner: &'a [String], name: &str) -> &'a str {
    let line = banner
        .iter()
        .find(|line| line.trim_start().starts_with(name));
    line.unwrap_or_else(|| panic!("no {name} in {banner:?}"))
        .trim_start()[name.len()..]
        .trim()
}

/// The number in a header of an answer.
pub(crate) fn number(answer: &str, header: &str) -> Option<u64> {
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix(header)?.strip_prefix(": "))?;
    Some(line.parse().unwrap())
}
