//! Where a reply ends.

use super::element::Element;
use super::{MAX_FRAME, WireFault};

/// Finds the end of the reply at the beginning of a buffer that fills up, and looks at no byte of a whole
/// element twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner {
    /// How far the whole elements reach.
    seen: usize,
    /// How many elements are still to come.
    missing: usize,
}

// === impl Scanner ===

impl Scanner {
    /// Says how many bytes the first reply in `bytes` has, once they are all there. After that it is at
    /// the beginning again, for the reply that follows.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, WireFault> {
        while self.missing > 0 {
            let Some((element, next)) = Element::read(bytes, self.seen)? else {
                // A string of a legal length may still be missing.
                return if bytes.len() > 2 * MAX_FRAME {
                    Err(WireFault::TooLong)
                } else {
                    Ok(None)
                };
            };
            self.seen = next;
            self.missing -= 1;
            if let Element::Array(length) = element {
                self.missing += length;
            }
            // An element has three bytes at least.
            if self.seen > MAX_FRAME || self.missing > MAX_FRAME / 3 {
                return Err(WireFault::TooLong);
            }
        }
        let length = self.seen;
        *self = Self::default();
        Ok(Some(length))
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            seen: 0,
            missing: 1,
        }
    }
}
