//! `RateLimitRequest`, and its way into the limiter's own types.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use tidegate_limiter::{Descriptor, Entry, Hits, LimitOverride};

use super::number::Number;
use super::object::Object;
use super::unit::Unit;

/// The most descriptors of one request; Envoy sends a handful.
pub(crate) const MAX_DESCRIPTORS: usize = 32;

/// The most entries of one descriptor.
pub(crate) const MAX_ENTRIES: usize = 32;

/// `envoy.service.ratelimit.v3.RateLimitRequest`. Fields may be written in either case, and `null` is
/// as good as absent; an unknown field is a fault, as in the reference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RateLimitRequest<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    domain: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    descriptors: Vec<Object<RateLimitDescriptor<'a>>>,
    #[serde(alias = "hits_addend", default, deserialize_with = "or_default")]
    hits_addend: Number,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitDescriptor<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    entries: Vec<Object<WireEntry<'a>>>,
    limit: Option<Object<RateLimitOverride>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number>,
    #[serde(alias = "is_negative_hits", default, deserialize_with = "or_default")]
    is_negative_hits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEntry<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    key: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    value: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitOverride {
    #[serde(alias = "requests_per_unit", default, deserialize_with = "or_default")]
    requests_per_unit: Number,
    #[serde(default, deserialize_with = "or_default")]
    unit: Unit,
}

/// A string, borrowed from the body unless it has escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a request asks, in the limiter's words.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) domain: &'a str,
    pub(crate) hits: u64,
    entries: Vec<Entry<'a>>,
    parts: Vec<Part>,
}

/// One descriptor, whose entries are a range of the question's.
#[derive(Debug)]
struct Part {
    entries: Range<usize>,
    hits: Hits,
    limit: Option<LimitOverride>,
}

/// A well-formed message that asks nothing sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRequest {
    #[error("{asked} descriptors, at most {MAX_DESCRIPTORS} are taken")]
    TooManyDescriptors { asked: usize },
    #[error("{asked} entries in descriptor {descriptor}, at most {MAX_ENTRIES} are taken")]
    TooManyEntries { descriptor: usize, asked: usize },
    #[error("descriptor {descriptor}: a `limit` needs a `unit` other than UNKNOWN")]
    NoUnit { descriptor: usize },
}

// === impl Question ===

impl<'a> Question<'a> {
    /// The descriptors for the limiter.
    pub(crate) fn descriptors(&self) -> Vec<Descriptor<'_>> {
        let descriptor = |part: &Part| Descriptor {
            entries: &self.entries[part.entries.clone()],
            hits: part.hits,
            limit: part.limit,
        };
        self.parts.iter().map(descriptor).collect()
    }

    fn add(
        &mut self,
        index: usize,
        descriptor: &'a RateLimitDescriptor<'a>,
    ) -> Result<(), BadRequest> {
        let asked = descriptor.entries.len();
        if asked > MAX_ENTRIES {
            return Err(BadRequest::TooManyEntries {
                descriptor: index,
                asked,
            });
        }
        let limit = descriptor.limit.as_ref();
        let limit = limit.map(|Object(limit)| LimitOverride::try_from(limit));
        let first = self.entries.len();
        self.entries.extend(
            descriptor
                .entries
                .iter()
                .map(|Object(entry)| Entry::from(entry)),
        );
        self.parts.push(Part {
            entries: first..self.entries.len(),
            hits: descriptor.hits(self.hits),
            limit: limit
                .transpose()
                .map_err(|NoUnit| BadRequest::NoUnit { descriptor: index })?,
        });
        Ok(())
    }
}

impl<'a> TryFrom<&'a RateLimitRequest<'a>> for Question<'a> {
    type Error = BadRequest;

    fn try_from(request: &'a RateLimitRequest<'a>) -> Result<Self, BadRequest> {
        let asked = request.descriptors.len();
        if asked > MAX_DESCRIPTORS {
            return Err(BadRequest::TooManyDescriptors { asked });
        }
        let mut question = Question {
            domain: &request.domain.0,
            // Absent and 0 both mean 1 at this level.
            hits: request.hits_addend.0.max(1),
            entries: Vec::new(),
            parts: Vec::with_capacity(asked),
        };
        for (index, Object(descriptor)) in request.descriptors.iter().enumerate() {
            question.add(index, descriptor)?;
        }
        Ok(question)
    }
}

// === impl RateLimitDescriptor ===

impl RateLimitDescriptor<'_> {
    fn hits(&self, of_request: u64) -> Hits {
        match (self.hits_addend, self.is_negative_hits) {
            (None, false) => Hits::OfRequest,
            (Some(Number(hits)), false) => Hits::Take(hits),
            (hits, true) => Hits::Refund(hits.map_or(of_request, |Number(hits)| hits)),
        }
    }
}

// === impl Entry ===

impl<'a> From<&'a WireEntry<'a>> for Entry<'a> {
    fn from(entry: &'a WireEntry<'a>) -> Self {
        Self {
            key: &entry.key.0,
            value: &entry.value.0,
        }
    }
}

// === impl LimitOverride ===

struct NoUnit;

impl TryFrom<&RateLimitOverride> for LimitOverride {
    type Error = NoUnit;

    fn try_from(limit: &RateLimitOverride) -> Result<Self, NoUnit> {
        let window = limit.unit.window().ok_or(NoUnit)?;
        Ok(Self {
            requests: limit.requests_per_unit.0,
            window,
        })
    }
}

/// Reads `null` as the default, as proto3 JSON has it.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
