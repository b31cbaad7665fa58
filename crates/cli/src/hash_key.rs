//! `tidegate hash-key`: the hashes of API keys, for the table of API keys.

use std::io::{self, BufRead, Read};
use std::process::ExitCode;

use tidegate_identify::ApiKeyHasher;

use crate::args::HashKeyArgs;
use crate::failure::Failure;
use crate::{rules_files, terminal};

/// The most that is read of API keys.
const MAX_BYTES: u64 = 16 << 20;

/// Prints a hash for each API key on stdin, a line each. Keys are not taken as arguments, because everybody on a machine sees those.
pub(crate) fn run(args: &HashKeyArgs) -> Result<ExitCode, Failure> {
    let bad = |reason: String| Failure::BadFile {
        path: args.key_file.clone(),
        reason,
    };
    let key = rules_files::read_bytes(&args.key_file).map_err(|reason| bad(reason.to_string()))?;
    let hasher = ApiKeyHasher::new(&key).map_err(|fault| bad(fault.to_string()))?;
    for line in io::stdin().lock().take(MAX_BYTES).lines() {
        let line = line.map_err(|reason| Failure::System {
            what: "read stdin",
            reason,
        })?;
        let api_key = line.trim();
        if !api_key.is_empty() {
            terminal::print(&format!("{}\n", hasher.hash_hex(api_key)));
        }
    }
    Ok(ExitCode::SUCCESS)
}
