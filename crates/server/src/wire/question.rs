//! What a request asks, in the limiter's words, whichever way it was written.

use std::cell::OnceCell;

use smallvec::SmallVec;
use tidegate_identify::{plain_text, text_of};
use tidegate_limiter::{Descriptor, Entry, Hits, LimitOverride};

use super::unit::Unit;

/// The most descriptors of one request; Envoy sends a handful.
pub(crate) const MAX_DESCRIPTORS: usize = 32;

/// The most entries of one descriptor.
pub(crate) const MAX_ENTRIES: usize = 32;

/// A question to the limiter. Its strings are those of the message; up to eight entries in four
/// descriptors nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Question<'a> {
    pub(crate) domain: &'a str,
    /// As it was written; see [`hits`](Self::hits).
    pub(super) hits_addend: u64,
    entries: SmallVec<[Entry<'a>; 8]>,
    parts: SmallVec<[Part; 4]>,
    /// Entries with bytes that need escapes; hardly ever there is one.
    raw: Vec<RawEntry<'a>>,
}

/// The texts of entries whose bytes need escapes, which the message cannot lend to a [`Question`].
#[derive(Debug, Default)]
pub(crate) struct EscapedTexts(OnceCell<Vec<[String; 2]>>);

/// What a descriptor says besides its entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub(super) hits_addend: Option<u64>,
    pub(super) is_negative_hits: bool,
    pub(super) limit: Option<WrittenLimit>,
}

/// A limit that came with the request, as it was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenLimit {
    pub(super) requests_per_unit: u64,
    pub(super) unit: Unit,
}

/// A well-formed message that asks nothing sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRequest {
    #[error("more than {MAX_DESCRIPTORS} descriptors")]
    TooManyDescriptors,
    #[error("more than {MAX_ENTRIES} entries in descriptor {descriptor}")]
    TooManyEntries { descriptor: usize },
    #[error("descriptor {descriptor}: a `limit` needs a `unit` other than UNKNOWN")]
    NoUnit { descriptor: usize },
}

/// An entry with a key or value that needs escapes, and its index among the question's entries.
#[derive(Debug)]
struct RawEntry<'a> {
    index: usize,
    key: &'a [u8],
    value: &'a [u8],
}

/// One descriptor, whose entries end at this place among the question's.
#[derive(Debug)]
struct Part {
    end: usize,
    hits_addend: Option<u64>,
    is_negative_hits: bool,
    limit: Option<LimitOverride>,
}

// === impl Question ===

impl<'a> Question<'a> {
    /// How much the request costs. Absent and 0 both mean 1 at this level.
    pub(crate) fn hits(&self) -> u64 {
        self.hits_addend.max(1)
    }

    /// The descriptors for the limiter.
    pub(crate) fn descriptors(&self) -> SmallVec<[Descriptor<'_>; 4]> {
        let mut start = 0;
        let descriptor = |part: &Part| {
            let entries = &self.entries[start..part.end];
            start = part.end;
            Descriptor {
                entries,
                hits: part.hits(self.hits()),
                limit: part.limit,
            }
        };
        self.parts.iter().map(descriptor).collect()
    }

    /// Adds an entry to the descriptor that is being read.
    pub(super) fn add_entry(&mut self, entry: Entry<'a>) -> Result<(), BadRequest> {
        let start = self.parts.last().map_or(0, |part| part.end);
        if self.entries.len() - start == MAX_ENTRIES {
            let descriptor = self.parts.len();
            return Err(BadRequest::TooManyEntries { descriptor });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Adds an entry of bytes. If they need escapes, the entry is complete only after [`escape`](Self::escape).
    pub(super) fn add_bytes(&mut self, key: &'a [u8], value: &'a [u8]) -> Result<(), BadRequest> {
        if let (Some(key), Some(value)) = (plain_text(key), plain_text(value)) {
            return self.add_entry(Entry { key, value });
        }
        self.raw.push(RawEntry {
            index: self.entries.len(),
            key,
            value,
        });
        self.add_entry(Entry { key: "", value: "" })
    }

    /// Escapes the keys and values that need it; `texts` holds them from then on.
    pub(super) fn escape(&mut self, texts: &'a EscapedTexts) {
        if self.raw.is_empty() {
            return;
        }
        let escaped = |raw: &RawEntry<'_>| [raw.key, raw.value].map(|it| text_of(it).into_owned());
        let texts = texts
            .0
            .get_or_init(|| self.raw.iter().map(escaped).collect());
        for (raw, [key, value]) in self.raw.drain(..).zip(texts) {
            self.entries[raw.index] = Entry { key, value };
        }
    }

    /// Ends the descriptor that is being read.
    pub(super) fn end_descriptor(&mut self, terms: &Terms) -> Result<(), BadRequest> {
        let descriptor = self.parts.len();
        if descriptor == MAX_DESCRIPTORS {
            return Err(BadRequest::TooManyDescriptors);
        }
        let no_unit = BadRequest::NoUnit { descriptor };
        let limit = terms.limit.map(|limit| limit.limit().ok_or(no_unit));
        self.parts.push(Part {
            end: self.entries.len(),
            hits_addend: terms.hits_addend,
            is_negative_hits: terms.is_negative_hits,
            limit: limit.transpose()?,
        });
        Ok(())
    }
}

// === impl Part ===

impl Part {
    fn hits(&self, of_request: u64) -> Hits {
        match (self.hits_addend, self.is_negative_hits) {
            (None, false) => Hits::OfRequest,
            (Some(hits), false) => Hits::Take(hits),
            (hits, true) => Hits::Refund(hits.unwrap_or(of_request)),
        }
    }
}

// === impl WrittenLimit ===

impl WrittenLimit {
    /// The limit, unless it has no unit.
    fn limit(self) -> Option<LimitOverride> {
        Some(LimitOverride {
            requests: self.requests_per_unit,
            window: self.unit.window()?,
            consistency: None,
        })
    }
}
