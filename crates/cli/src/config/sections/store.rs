//! Where counters are kept.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::{Bytes, Words};

/// Where counters are kept.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) engine: Option<Engine>,
    pub(crate) max_memory: Bytes,
    pub(crate) state: State,
}

/// Which store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The memory of this process.
    Memory,
}

/// Where counters outlive the process.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) file: Option<PathBuf>,
    pub(crate) interval: Duration,
}

/// The least memory that the embedded store works with.
const LEAST_MEMORY: Bytes = Bytes(1 << 20);

// === impl Store ===

impl Store {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let engine = section.optional(
            "engine",
            "Where counters are kept; say memory to start though REDIS_URL or MEMCACHE_HOST_PORT is set",
        );
        let max_memory = section.value(
            "max_memory",
            "The most memory for counters",
            Bytes(256 << 20),
        );
        if max_memory.0 < LEAST_MEMORY.0 {
            let message = format!("{max_memory} of memory are too little");
            section.fault(
                "max_memory",
                Code::BadValue,
                message,
                "the store needs at least 1MiB",
            );
        }
        let mut state = section.block_or("state", "Where counters outlive the process", "file");
        Self {
            engine,
            max_memory,
            state: State {
                file: state.optional(
                    "file",
                    "Written while it runs and on its end, read at start",
                ),
                interval: state.value(
                    "interval",
                    "How often it is written",
                    Duration::from_secs(10),
                ),
            },
        }
    }
}

impl Words for Engine {
    const EXPECTED: &'static str = "a store";
    const WORDS: &'static [(&'static str, Self)] = &[("memory", Self::Memory)];
}
