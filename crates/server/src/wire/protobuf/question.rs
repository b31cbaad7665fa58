//! `RateLimitRequest` as protobuf, and its way to a question.

use super::read::{Malformed, Reader};
use crate::wire::question::{BadRequest, EscapedTexts, Question, Terms, WrittenLimit};
use crate::wire::unit::Unit;

/// A message that asks nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadMessage {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
}

// === impl Question ===

impl<'a> Question<'a> {
    /// Reads `envoy.service.ratelimit.v3.RateLimitRequest`, in place: moved out of a function, a
    /// question would be copied whole. Fields that are not known are passed over. Keys and values are bytes, as clients of a
    /// proxy send them; `texts` holds those that need escapes.
    pub(crate) fn read(
        &mut self,
        message: &'a [u8],
        texts: &'a EscapedTexts,
    ) -> Result<(), BadMessage> {
        let mut fields = Reader::new(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.domain = value.text(field)?,
                2 => self.read_descriptor(value.bytes(field)?)?,
                3 => self.hits_addend = value.uint32(field)?,
                _ => {}
            }
        }
        self.escape(texts);
        Ok(())
    }

    /// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
    fn read_descriptor(&mut self, message: &'a [u8]) -> Result<(), BadMessage> {
        let mut terms = Terms::default();
        let mut fields = Reader::new(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.read_entry(value.bytes(field)?)?,
                // A message that comes twice is one message in two pieces.
                2 => terms
                    .limit
                    .get_or_insert_default()
                    .read(value.bytes(field)?)?,
                3 => read_wrapped(
                    terms.hits_addend.get_or_insert_default(),
                    value.bytes(field)?,
                )?,
                4 => terms.is_negative_hits = value.bool(field)?,
                _ => {}
            }
        }
        Ok(self.end_descriptor(&terms)?)
    }

    fn read_entry(&mut self, message: &'a [u8]) -> Result<(), BadMessage> {
        let (mut key, mut value) = (&[][..], &[][..]);
        let mut fields = Reader::new(message);
        while let Some((field, bytes)) = fields.next()? {
            match field {
                1 => key = bytes.bytes(field)?,
                2 => value = bytes.bytes(field)?,
                _ => {}
            }
        }
        Ok(self.add_bytes(key, value)?)
    }
}

// === impl WrittenLimit ===

impl WrittenLimit {
    fn read(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let mut fields = Reader::new(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.requests_per_unit = value.uint32(field)?,
                // A unit of a later protocol is as good as none: it has no length here.
                2 => self.unit = Unit::numbered(value.uint64(field)?).unwrap_or_default(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// `google.protobuf.UInt64Value`.
fn read_wrapped(number: &mut u64, message: &[u8]) -> Result<(), Malformed> {
    let mut fields = Reader::new(message);
    while let Some((field, value)) = fields.next()? {
        if field == 1 {
            *number = value.uint64(field)?;
        }
    }
    Ok(())
}
