//! Scripts that Redis runs.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A script and the name that Redis knows it by. Cheap to clone.
#[derive(Clone)]
pub struct Script(Arc<Inner>);

/// A script about one key, and one about several that says of each what the first would.
#[derive(Clone, Debug)]
pub struct Joinable {
    alone: Script,
    joined: Script,
}

struct Inner {
    /// The SHA-1 of the body, in hexadecimal: a name, not a proof of anything.
    sha: String,
    body: String,
}

// === impl Script ===

impl Script {
    /// A script with this body.
    pub fn new(body: impl Into<String>) -> Self {
        let body = body.into();
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, body.as_bytes());
        let sha = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self(Arc::new(Inner {
            sha: sha.collect(),
            body,
        }))
    }

    /// The name that Redis knows it by.
    pub fn sha(&self) -> &str {
        &self.0.sha
    }

    /// Its text.
    pub fn body(&self) -> &str {
        &self.0.body
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.sha == other.0.sha
    }
}

impl Eq for Script {}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.0.sha).finish()
    }
}

// === impl Joinable ===

impl Joinable {
    /// `alone` takes one key and one argument. `joined` takes as many of both, in the same order, and replies
    /// with a list of what `alone` would have replied to each; an error in that is the reply to one of them.
    ///
    /// What `alone` takes besides, `joined` takes at the end, for each.
    pub fn new(alone: Script, joined: Script) -> Self {
        Self { alone, joined }
    }

    /// The script about one key.
    pub fn alone(&self) -> &Script {
        &self.alone
    }

    /// The script about several.
    pub fn joined(&self) -> &Script {
        &self.joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_named_by_its_sha1() {
        assert_eq!(
            Script::new("return 1").sha(),
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        );
    }
}
