//! A bad network between a client and a server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::now;

/// Passes bytes between clients and one server, and does to them what it is told; ends when dropped.
#[derive(Debug)]
pub struct FaultyProxy {
    address: SocketAddr,
    network: Arc<Network>,
}

/// What is wrong with the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Bytes take this long, each way.
    Delay(Duration),
    /// Nothing passes, either way, until there is another fault or none; then all of it does.
    Pause,
    /// Bytes get lost, both ways.
    Drop,
    /// After so many more bytes of replies the connection that has the next is cut, once.
    CutAfter(usize),
    /// Of what comes back at one moment so many bytes pass, and then its connection is cut; so with every
    /// connection.
    CutEach(usize),
    /// Whatever is asked, somebody answers who is no Redis.
    Lie,
    /// Connections are cut, and new ones too.
    Refuse,
}

#[derive(Debug)]
struct Network {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    fault: Fault,
    is_over: bool,
    /// The length of each piece that came from a client.
    received: Vec<usize>,
    connections: Vec<TcpStream>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Out,
    Back,
}

/// What somebody else might say.
const LIE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";

/// Bytes on their way, and when they arrive.
type Piece = (Instant, Vec<u8>);

// === impl FaultyProxy ===

impl FaultyProxy {
    /// Starts one in front of a server, with nothing wrong.
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let network = Arc::new(Network {
            server,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&network);
        thread::spawn(move || accepting.accept(&listener));
        Self { address, network }
    }

    /// Where to connect to instead of to the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of that.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Makes something go wrong, or well again.
    pub fn set(&self, fault: Fault) {
        let mut state = self.network.state();
        state.fault = fault;
        if fault == Fault::Refuse {
            state.cut();
        }
        self.network.changed.notify_all();
    }

    /// Cuts all connections, once.
    pub fn cut(&self) {
        self.network.state().cut();
    }

    /// The lengths of the pieces that came from clients so far: one for each write, as long as those are
    /// not large.
    pub fn received(&self) -> Vec<usize> {
        self.network.state().received.clone()
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        let mut state = self.network.state();
        state.is_over = true;
        state.cut();
        drop(state);
        self.network.changed.notify_all();
        // Wakes the listener, so that it sees.
        let _ = TcpStream::connect(self.address);
    }
}

// === impl Network ===

impl Network {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let is_refused = {
                let state = self.state();
                if state.is_over {
                    return;
                }
                state.fault == Fault::Refuse
            };
            let (Ok(client), false) = (client, is_refused) else {
                continue;
            };
            let Ok(server) = TcpStream::connect(self.server) else {
                continue;
            };
            self.join(&client, &server);
        }
    }

    /// Passes bytes both ways between two connections until one ends.
    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let clone = |stream: &TcpStream| stream.try_clone().expect("it is open");
        for stream in [client, server] {
            stream.set_nodelay(true).expect("it is open");
            self.state().connections.push(clone(stream));
        }
        for (from, to, way) in [(client, server, Way::Out), (server, client, Way::Back)] {
            let (sender, receiver) = channel();
            let (network, from) = (Arc::clone(self), clone(from));
            thread::spawn(move || network.read(from, way, &sender));
            let (network, to) = (Arc::clone(self), clone(to));
            thread::spawn(move || network.write(to, way, &receiver));
        }
    }

    fn read(&self, mut from: TcpStream, way: Way, pieces: &Sender<Piece>) {
        let mut bytes = vec![0; 256 * 1024];
        while let Ok(length) = from.read(&mut bytes) {
            if length == 0 {
                break;
            }
            let mut state = self.state();
            if way == Way::Out {
                state.received.push(length);
            }
            let delay = match state.fault {
                Fault::Drop => continue,
                Fault::Delay(delay) => delay,
                _ => Duration::ZERO,
            };
            drop(state);
            if pieces
                .send((now() + delay, bytes[..length].to_vec()))
                .is_err()
            {
                break;
            }
        }
    }

    fn write(&self, mut to: TcpStream, way: Way, pieces: &Receiver<Piece>) {
        for (arrives, mut bytes) in pieces {
            let verdict = self.hold(arrives, way, &mut bytes);
            if to.write_all(&bytes).is_err() || verdict.is_break() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits until a piece may pass, and cuts it short where the connection is cut.
    fn hold(&self, arrives: Instant, way: Way, bytes: &mut Vec<u8>) -> std::ops::ControlFlow<()> {
        let mut state = self.state();
        loop {
            let left = arrives.saturating_duration_since(now());
            let is_held = state.fault == Fault::Pause || !left.is_zero();
            if !is_held || state.is_over {
                break;
            }
            let wait = if left.is_zero() {
                super::PATIENCE
            } else {
                left
            };
            let woken = self.changed.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        match (&mut state.fault, way) {
            (Fault::CutAfter(left), Way::Back) if *left < bytes.len() => {
                bytes.truncate(*left);
                state.fault = Fault::None;
                std::ops::ControlFlow::Break(())
            }
            (Fault::CutAfter(left), Way::Back) => {
                *left -= bytes.len();
                std::ops::ControlFlow::Continue(())
            }
            (Fault::Lie, Way::Back) => {
                *bytes = LIE.to_vec();
                std::ops::ControlFlow::Continue(())
            }
            (Fault::CutEach(most), Way::Back) => {
                bytes.truncate(*most);
                std::ops::ControlFlow::Break(())
            }
            _ => std::ops::ControlFlow::Continue(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn cut(&mut self) {
        for connection in self.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}
