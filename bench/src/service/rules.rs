//! The rules that the server is given.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::message::DOMAIN;

/// The key of a descriptor that each caller has a limit by.
pub const LIMITED: &str = "user";

/// The key of a descriptor whose callers are denied after their first call.
pub const DENIED: &str = "denied";

/// The key of a descriptor that no rule knows.
pub const UNKNOWN: &str = "nobody";

/// A file of rules, removed when dropped.
pub struct RulesFile(PathBuf);

// === impl RulesFile ===

impl RulesFile {
    /// Rules of which the first limits callers, so far up that none is refused, the second denies all but the
    /// first call of each, and the others apply to nobody here.
    pub fn write(count: usize) -> Result<Self, Box<dyn Error>> {
        let limit = "{unit: day, requests_per_unit: 1000000000}";
        let mut text = format!("domain: {DOMAIN}\ndescriptors:\n");
        writeln!(text, "  - {{key: {LIMITED}, rate_limit: {limit}}}")?;
        if count > 1 {
            let limit = "{unit: year, requests_per_unit: 1}";
            writeln!(text, "  - {{key: {DENIED}, rate_limit: {limit}}}")?;
        }
        for n in 2..count {
            let limit = format!("{{unit: minute, requests_per_unit: {n}}}");
            writeln!(
                text,
                "  - {{key: path, value: /resource/{n}, rate_limit: {limit}}}"
            )?;
        }
        Self::create(&count.to_string(), &text)
    }

    /// One rule: a limit for each caller, in fixed windows.
    pub fn limiting(limit: u64, window: Duration) -> Result<Self, Box<dyn Error>> {
        let window = window.as_secs();
        let rate = format!("{{window: {window}s, limit: {limit}}}");
        let text =
            format!("domain: {DOMAIN}\ndescriptors:\n  - {{key: {LIMITED}, rate_limit: {rate}}}\n");
        Self::create(&format!("{limit}-in-{window}"), &text)
    }

    fn create(name: &str, text: &str) -> Result<Self, Box<dyn Error>> {
        let name = format!("tidegate-bench-{}-{name}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text)?;
        Ok(Self(path))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RulesFile {
    fn drop(&mut self) {
        // A file left behind in the temporary folder does no harm.
        let _ = fs::remove_file(&self.0);
    }
}
