//! The user instructions of one proxied GET, by callgrind.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tokio::net::TcpStream;

use super::contenders::{Limits, start_tidegate};
use super::http1;
use super::program::{Program, missing};
use crate::service::Executable;

/// The name of callgrind's files; it numbers what it dumps.
const PROFILE: &str = "callgrind.out";

/// GETs on one connection.
#[derive(Clone, Copy)]
pub struct ProxiedGets {
    /// GETs that do not count: they fill caches and open the connection to the upstream.
    pub warmup: u32,
    /// GETs that count, and as many again that count as later ones.
    pub counted: u32,
}

/// The instructions of one GET.
#[derive(Clone, Copy)]
pub struct GetInstructions {
    /// Of the first ones, nearly all of which the recorder looks at for the busiest callers: the first 1,000 of each window.
    pub first: f64,
    /// Of later ones, of which it looks at a few.
    pub later: f64,
}

// === impl ProxiedGets ===

impl ProxiedGets {
    /// The instructions of one GET of a proxy with those limits.
    pub fn measure(
        self,
        upstream: SocketAddr,
        limits: Limits,
    ) -> Result<GetInstructions, Box<dyn Error>> {
        let serve = |file: &Path| {
            let mut valgrind = Command::new("valgrind");
            let folder = file.parent().ok_or("a file lies in a folder")?;
            valgrind.args(["--quiet", "--tool=callgrind"]).arg(format!(
                "--callgrind-out-file={}",
                folder.join(PROFILE).display()
            ));
            let tidegate = Executable::current()?.serve(file);
            valgrind
                .arg(tidegate.get_program())
                .args(tidegate.get_args());
            Ok(valgrind)
        };
        let proxy = start_tidegate(upstream, limits, None, serve)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut stream = runtime.block_on(TcpStream::connect(proxy.address))?;
        let mut get = async |count| -> Result<(), Box<dyn Error>> {
            for _ in 0..count {
                http1::get(&mut stream, 0).await?;
            }
            Ok(())
        };
        runtime.block_on(get(self.warmup))?;
        control(&proxy, "--zero")?;
        let mut next_part = |number: u32| -> Result<f64, Box<dyn Error>> {
            runtime.block_on(get(self.counted))?;
            control(&proxy, "--dump")?;
            let file = proxy.folder().join(format!("{PROFILE}.{number}"));
            Ok(total(&fs::read_to_string(file)?)? / f64::from(self.counted))
        };
        Ok(GetInstructions {
            first: next_part(1)?,
            later: next_part(2)?,
        })
    }
}

/// The sum of a profile.
fn total(profile: &str) -> Result<f64, Box<dyn Error>> {
    let mut lines = profile.lines();
    let total = lines.find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind gives no totals")?.trim().parse()?)
}

/// Tells the callgrind of `proxy` to do something, and waits until it has.
fn control(proxy: &Program, action: &str) -> Result<(), Box<dyn Error>> {
    let mut control = Command::new("callgrind_control");
    control.arg(action).arg(proxy.id().to_string());
    let output = control
        .output()
        .map_err(|error| missing(&control, &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.contains("OK.") {
        Ok(())
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("callgrind_control {action}: {text}{errors}").into())
    }
}
