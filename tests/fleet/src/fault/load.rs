//! Load beside the fleet: a busy host, and a Redis that is near its end.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

use tidegate_store_redis::test_util::RedisServer;

use crate::clock::{self, now};

/// Processes that use all the processor time they can get; killed when dropped.
pub(super) struct BusyProcesses(Vec<Child>);

/// The share of a processor's time that a busy Redis uses.
const LOAD: f64 = 0.9;

/// As many clients send long commands; with fewer Redis is idle whenever they are late.
const CLIENTS: usize = 4;

/// The pauses of the clients are set anew so often, in seconds.
const STEP: f64 = 0.25;

/// The ticks of a second in which Linux counts processor time.
const TICKS: f64 = 100.0;

/// Keeps Redis busy for nine tenths of its time: clients with long commands, whose pauses follow from the
/// processor time that Redis used, that of the nodes' calls included. Returns its share in the mean.
pub(super) fn occupy(server: &RedisServer, seconds: f64) -> Result<f64, String> {
    let (id, address) = (server.id(), server.address());
    let (began, before) = (now(), processor_time(id)?);
    let end = began + clock::micros(seconds);
    let pause = AtomicU64::new(200);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| occupy_until(address, end, &pause)))
            .collect();
        while now() < end {
            clock::sleep(STEP);
            let elapsed = (now() - began) as f64 / 1e6;
            let used = processor_time(id)? - before;
            // Also makes up for what was missed before.
            let is_idle = used < LOAD * elapsed;
            let old = pause.load(Ordering::Relaxed);
            let new = if is_idle {
                old * 3 / 4
            } else {
                old * 5 / 4 + 10
            };
            pause.store(new.min(20_000), Ordering::Relaxed);
        }
        for client in clients {
            let failed = Err(io::ErrorKind::Other.into());
            let finished = client.join().unwrap_or(failed);
            finished.map_err(|error| format!("Redis could not be kept busy: {error}"))?;
        }
        Ok(())
    })
    .and_then(|()| {
        let elapsed = (now() - began) as f64 / 1e6;
        Ok((processor_time(id)? - before) / elapsed)
    })
}

/// Sends long commands, with a pause of so many microseconds after each few.
fn occupy_until(address: SocketAddr, end: u64, pause: &AtomicU64) -> io::Result<()> {
    const COMMAND: &str = "EVAL 'local x = 0 for i = 1, 20000 do x = x + i end return x' 0\r\n";
    const COUNT: usize = 4;
    let mut stream = TcpStream::connect(address)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut reply = String::new();
    while now() < end {
        stream.write_all(COMMAND.repeat(COUNT).as_bytes())?;
        for _ in 0..COUNT {
            replies.read_line(&mut reply)?;
        }
        reply.clear();
        clock::sleep_until(now() + pause.load(Ordering::Relaxed));
    }
    Ok(())
}

/// The seconds of processor time that a process has used.
fn processor_time(id: u32) -> Result<f64, String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"));
    let stat = stat.map_err(|error| error.to_string())?;
    // User and system time are the 12th and 13th field after the name, which is in brackets.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let fields = rest.split(' ').skip(11).take(2);
    let ticks = fields.filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS)
}

// === impl BusyProcesses ===

impl BusyProcesses {
    pub(super) fn start(count: usize) -> Result<Self, String> {
        let mut processes = Self(Vec::new());
        for _ in 0..count {
            let child = Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            processes.0.push(child);
        }
        Ok(processes)
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
