//! Processor cores for the programs of a measurement.

use std::error::Error;
use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::program::Program;

/// Two cores: one for the proxy, one for the load and the upstream.
///
/// On a machine with two cores the kernel often puts the upstream beside the proxy. Then the latency is that of a full core, and
/// says more about where the upstream ran than about the proxy.
pub struct TwoCores {
    proxy: CpuSet,
    others: CpuSet,
    /// All cores that we may use, to return to.
    all: CpuSet,
}

/// Where the programs of a load run. Until dropped: then they may run anywhere again.
pub struct Placement<'a> {
    cores: &'a TwoCores,
    upstream: &'a Program,
    proxy: &'a Program,
}

// === impl TwoCores ===

impl TwoCores {
    /// Takes the first two cores that we may use.
    pub fn first() -> Result<Self, Box<dyn Error>> {
        let all = sched_getaffinity(None)?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
        let mut next = || {
            let mut only = CpuSet::new();
            only.set(cores.next().ok_or("latency needs two cores")?);
            Ok::<_, Box<dyn Error>>(only)
        };
        Ok(Self {
            others: next()?,
            proxy: next()?,
            all,
        })
    }

    /// Gives `proxy` a core of its own; `upstream` and this thread share the other.
    pub fn place<'a>(
        &'a self,
        upstream: &'a Program,
        proxy: &'a Program,
    ) -> Result<Placement<'a>, Box<dyn Error>> {
        let placement = Placement {
            cores: self,
            upstream,
            proxy,
        };
        bind(proxy, &self.proxy)?;
        bind(upstream, &self.others)?;
        sched_setaffinity(None, &self.others)?;
        Ok(placement)
    }
}

// === impl Placement ===

impl Drop for Placement<'_> {
    fn drop(&mut self) {
        let all = &self.cores.all;
        let result = sched_setaffinity(None, all)
            .map_err(Into::into)
            .and_then(|()| bind(self.upstream, all))
            .and_then(|()| bind(self.proxy, all));
        if let Err(error) = result {
            eprintln!("gateway: cannot give back the cores: {error}");
        }
    }
}

/// Has all threads of a program run on those cores only.
fn bind(program: &Program, cores: &CpuSet) -> Result<(), Box<dyn Error>> {
    for thread in fs::read_dir(format!("/proc/{}/task", program.id()))? {
        let name = thread?.file_name();
        let id = name.to_str().ok_or("threads have numbers")?.parse()?;
        // A thread that has ended since needs no core.
        match sched_setaffinity(Pid::from_raw(id), cores) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
