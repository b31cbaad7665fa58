//! `RateLimitRequest` as JSON, and its way to a question.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use tidegate_identify::text_of;
use tidegate_limiter::Entry;

use super::number::{Number, Number32};
use super::object::Object;
use super::question::{BadRequest, Question, Terms, WrittenLimit};
use super::unit::Unit;

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
    hits_addend: Number32,
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
    requests_per_unit: Number32,
    #[serde(default, deserialize_with = "or_default")]
    unit: Unit,
}

/// A string, borrowed from the body unless it has escapes. Bytes that are not UTF-8 and half surrogates (`\ud800`) are
/// written as [`text_of`] says: a gateway may copy them from a header.
#[derive(Debug, Default)]
struct Text<'a>(Cow<'a, str>);

struct TextVisitor;

// === impl Text ===

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

// === impl TextVisitor ===

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
        Ok(Text(text_of(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
        Ok(Text(text_of(bytes).into_owned().into()))
    }
}

// === impl Question ===

impl<'a> TryFrom<&'a RateLimitRequest<'a>> for Question<'a> {
    type Error = BadRequest;

    fn try_from(request: &'a RateLimitRequest<'a>) -> Result<Self, BadRequest> {
        let mut question = Question::default();
        question.domain = &request.domain.0;
        question.hits_addend = request.hits_addend.0.into();
        for Object(descriptor) in &request.descriptors {
            for Object(entry) in &descriptor.entries {
                question.add_entry(entry.into())?;
            }
            question.end_descriptor(&descriptor.into())?;
        }
        Ok(question)
    }
}

// === impl Terms ===

impl From<&RateLimitDescriptor<'_>> for Terms {
    fn from(descriptor: &RateLimitDescriptor<'_>) -> Self {
        let limit = descriptor.limit.as_ref();
        Self {
            hits_addend: descriptor.hits_addend.map(|Number(hits)| hits),
            is_negative_hits: descriptor.is_negative_hits,
            limit: limit.map(|Object(limit)| WrittenLimit {
                requests_per_unit: limit.requests_per_unit.0.into(),
                unit: limit.unit,
            }),
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
