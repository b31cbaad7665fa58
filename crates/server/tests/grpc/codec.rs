//! The protobuf of ours against another's: what one writes the other reads.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidegate_identify::text_of;
use tidegate_limiter::{Hits, LimitOverride};
use tidegate_server::test_util::read_question;

use crate::wire::{Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, UInt64Value};

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    vec(
        (".{0,200}", ".{0,20}").prop_map(|(key, value)| Entry { key, value }),
        0..10,
    )
}

fn descriptors() -> impl Strategy<Value = RateLimitDescriptor> {
    let limit = (any::<u32>(), 1..=7).prop_map(|(requests_per_unit, unit)| RateLimitOverride {
        requests_per_unit,
        unit,
    });
    let hits = any::<u64>().prop_map(|value| UInt64Value { value });
    (
        entries(),
        proptest::option::of(limit),
        proptest::option::of(hits),
        any::<bool>(),
    )
        .prop_map(
            |(entries, limit, hits_addend, is_negative_hits)| RateLimitDescriptor {
                entries,
                limit,
                hits_addend,
                is_negative_hits,
            },
        )
}

fn requests() -> impl Strategy<Value = RateLimitRequest> {
    (".{0,30}", vec(descriptors(), 0..6), any::<u32>()).prop_map(
        |(domain, descriptors, hits_addend)| RateLimitRequest {
            domain,
            descriptors,
            hits_addend,
        },
    )
}

fn limit_of(limit: RateLimitOverride) -> LimitOverride {
    let seconds = match limit.unit {
        1 => 1,
        2 => 60,
        3 => 3_600,
        4 => 86_400,
        5 => 30 * 86_400,
        6 => 365 * 86_400,
        _ => 7 * 86_400,
    };
    LimitOverride {
        requests: limit.requests_per_unit.into(),
        window: Duration::from_secs(seconds),
        consistency: None,
    }
}

fn hits_of(descriptor: &RateLimitDescriptor, request: u64) -> Hits {
    match (descriptor.hits_addend, descriptor.is_negative_hits) {
        (None, false) => Hits::OfRequest,
        (Some(hits), false) => Hits::Take(hits.value),
        (Some(hits), true) => Hits::Refund(hits.value),
        (None, true) => Hits::Refund(request),
    }
}

proptest! {
    /// Whatever another encoder writes is read as it was meant.
    #[test]
    fn a_question_is_read_as_it_was_written(request in requests()) {
        read_question(&request.encode_to_vec(), |domain, descriptors, hits| {
            assert_eq!(domain, request.domain);
            assert_eq!(hits, u64::from(request.hits_addend.max(1)));
            assert_eq!(descriptors.len(), request.descriptors.len());
            for (read, written) in descriptors.iter().zip(&request.descriptors) {
                let text = |text: &str| text_of(text.as_bytes()).into_owned();
                let entries = written.entries.iter().map(|it| (text(&it.key), text(&it.value)));
                let read_entries = read.entries.iter().map(|it| (it.key.to_owned(), it.value.to_owned()));
                assert!(read_entries.eq(entries));
                assert_eq!(read.limit, written.limit.map(limit_of));
                assert_eq!(read.hits, hits_of(written, hits));
            }
        }).unwrap();
    }

    /// A message that is cut, or has a byte changed, is read or refused, but never more than that.
    #[test]
    fn damage_does_no_harm(request in requests(), at: prop::sample::Index, byte: u8) {
        let mut message = request.encode_to_vec();
        if !message.is_empty() {
            let at = at.index(message.len());
            let _ = read_question(&message[..at], |_, _, _| ());
            message[at] = byte;
            let _ = read_question(&message, |_, _, _| ());
        }
    }
}

#[test]
fn fields_of_a_later_protocol_are_passed_over() {
    let mut message = RateLimitRequest {
        domain: "api".to_owned(),
        ..RateLimitRequest::default()
    }
    .encode_to_vec();
    // Fields 100 to 103, one of each wire type.
    message.extend([0xa0, 6, 1]);
    message.extend([0xa9, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend([0xb2, 6, 1, b'x']);
    message.extend([0xbd, 6, 0, 0, 0, 0]);
    let domain = read_question(&message, |domain, _, _| domain.to_owned());
    assert_eq!(domain, Ok("api".to_owned()));
}

#[test]
fn a_message_in_two_pieces_is_one() {
    // The limit of a descriptor: first its number, then its unit.
    let descriptor = [0x12, 2, 0x08, 7, 0x12, 2, 0x10, 3];
    let mut message = vec![0x12, 8];
    message.extend(descriptor);
    let limit = read_question(&message, |_, descriptors, _| descriptors[0].limit);
    let window = Duration::from_hours(1);
    assert_eq!(
        limit,
        Ok(Some(LimitOverride {
            requests: 7,
            window,
            consistency: None,
        }))
    );
}

#[test]
fn too_much_of_anything_is_refused() {
    let mut request = RateLimitRequest {
        descriptors: vec![RateLimitDescriptor::default(); 33],
        ..RateLimitRequest::default()
    };
    let read = |request: &RateLimitRequest| {
        let read = read_question(&request.encode_to_vec(), |_, _, _| ());
        read.unwrap_err()
    };
    assert_eq!(read(&request), "more than 32 descriptors");
    request.descriptors.truncate(1);
    request.descriptors[0].entries = vec![Entry::default(); 33];
    assert_eq!(read(&request), "more than 32 entries in descriptor 0");
}
