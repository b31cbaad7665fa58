use proptest::prelude::*;

use super::*;

/// A frame as a scanner finds it, with the bytes of its payload that were there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Frame(FrameKind, usize, u64),
    Fault(FrameFault),
}

/// Scans `bytes` as they arrive in reads of these lengths, again and again, keeping only what was not passed.
fn scan(sender: FrameSender, bytes: &[u8], reads: &[usize]) -> (Vec<Found>, FrameScanner) {
    let mut scanner = FrameScanner::new(sender);
    let mut found = Vec::new();
    let mut lengths = reads.iter().cycle();
    let (mut held, mut n_read) = (Vec::new(), 0);
    while n_read < bytes.len() {
        let read = *lengths.next().unwrap();
        let end = bytes.len().min(n_read + read.max(1));
        held.extend_from_slice(&bytes[n_read..end]);
        n_read = end;
        loop {
            match scanner.scan(&held) {
                Ok(FramePart::Header { kind, n_bytes }) => {
                    found.push(Found::Frame(kind, n_bytes, 0));
                    held.drain(..n_bytes);
                }
                Ok(FramePart::Payload { n_bytes }) => {
                    let Some(Found::Frame(_, _, payload)) = found.last_mut() else {
                        panic!("a payload without a header");
                    };
                    *payload += n_bytes as u64;
                    held.drain(..n_bytes);
                }
                Ok(FramePart::Incomplete) => break,
                Err(fault) => {
                    found.push(Found::Fault(fault));
                    return (found, scanner);
                }
            }
        }
        assert!(held.len() < 14, "no more than a header is held back");
    }
    (found, scanner)
}

fn check(sender: FrameSender, bytes: &[u8], expected: &[Found]) {
    assert_eq!(
        scan(sender, bytes, &[bytes.len()]).0,
        expected,
        "{bytes:x?}"
    );
    assert_eq!(scan(sender, bytes, &[1]).0, expected, "{bytes:x?}");
}

fn check_fault(first: u8, second: u8, fault: FrameFault) {
    check(
        FrameSender::Client,
        &[first, second],
        &[Found::Fault(fault)],
    );
}

const MASK: [u8; 4] = [1, 2, 3, 4];

fn masked(first: u8, length: &[u8], payload: usize) -> Vec<u8> {
    [
        &[first, 0x80 | length[0]],
        &length[1..],
        &MASK,
        &vec![7; payload],
    ]
    .concat()
}

#[test]
fn lengths_have_three_forms() {
    use FrameKind::{Control, Message};
    let frames = [
        masked(0x81, &[0], 0),
        masked(0x82, &[125], 125),
        masked(0x81, &[126, 1, 0], 256),
        masked(0x81, &[127, 0, 0, 0, 0, 0, 1, 0, 0], 65_536),
        masked(0x89, &[2], 2),
    ];
    check(
        FrameSender::Client,
        &frames.concat(),
        &[
            Found::Frame(Message, 6, 0),
            Found::Frame(Message, 6, 125),
            Found::Frame(Message, 8, 256),
            Found::Frame(Message, 14, 65_536),
            Found::Frame(Control, 6, 2),
        ],
    );
}

#[test]
fn fragments_are_not_messages() {
    use FrameKind::{Close, Continuation, Control, Message};
    let frames = [
        masked(0x01, &[1], 1),
        // Control frames may come between fragments.
        masked(0x8a, &[0], 0),
        masked(0x00, &[0], 0),
        masked(0x80, &[1], 1),
        masked(0x82, &[0], 0),
        masked(0x88, &[2], 2),
    ];
    let expected = [Message, Control, Continuation, Continuation, Message, Close];
    let (found, scanner) = scan(FrameSender::Client, &frames.concat(), &[3]);
    let kinds: Vec<FrameKind> = found
        .iter()
        .map(|found| match found {
            Found::Frame(kind, ..) => *kind,
            Found::Fault(fault) => panic!("{fault}"),
        })
        .collect();
    assert_eq!(kinds, expected);
    assert!(scanner.is_at_boundary());
}

#[test]
fn compressed_messages_are_messages() {
    // RSV1, as permessage-deflate sets it on the first frame of a message.
    check(
        FrameSender::Client,
        &masked(0xc1, &[3], 3),
        &[Found::Frame(FrameKind::Message, 6, 3)],
    );
}

#[test]
fn faults_are_found_in_two_bytes() {
    for opcode in [0x3, 0x4, 0x5, 0x6, 0x7, 0xb, 0xc, 0xd, 0xe, 0xf] {
        check_fault(0x80 | opcode, 0x80, FrameFault::ReservedOpcode(opcode));
    }
    check_fault(0x81, 0x00, FrameFault::Unmasked);
    check_fault(0x09, 0x80, FrameFault::FragmentedControl);
    check_fault(0x89, 0xfe, FrameFault::LongControl);
    check_fault(0x88, 0xff, FrameFault::LongControl);
    check_fault(0x80, 0x80, FrameFault::UnexpectedContinuation);
}

#[test]
fn a_message_ends_before_the_next_begins() {
    let frames = [masked(0x01, &[0], 0), masked(0x81, &[0], 0)];
    check(
        FrameSender::Client,
        &frames.concat(),
        &[
            Found::Frame(FrameKind::Message, 6, 0),
            Found::Fault(FrameFault::UnfinishedMessage),
        ],
    );
}

#[test]
fn lengths_end_at_63_bits() {
    let largest = [127, 0x7f, 255, 255, 255, 255, 255, 255, 255];
    check(
        FrameSender::Client,
        &masked(0x82, &largest, 9),
        &[Found::Frame(FrameKind::Message, 14, 9)],
    );
    let too_large = [127, 0x80, 0, 0, 0, 0, 0, 0, 0];
    check(
        FrameSender::Client,
        &masked(0x82, &too_large, 0),
        &[Found::Fault(FrameFault::LengthOutOfRange)],
    );
}

#[test]
fn frames_of_servers_are_only_told_apart() {
    use FrameKind::{Continuation, Control, Message};
    let frames: [&[u8]; 5] = [
        &[0x81, 1, 7],
        // Each of these would be a fault of a client.
        &masked(0x81, &[1], 1),
        &[0x80, 0],
        &[0x0f, 126, 0, 1, 7],
        &[0x83, 0],
    ];
    check(
        FrameSender::Server,
        &frames.concat(),
        &[
            Found::Frame(Message, 2, 1),
            Found::Frame(Message, 6, 1),
            Found::Frame(Continuation, 2, 0),
            Found::Frame(Control, 4, 1),
            Found::Frame(Message, 2, 0),
        ],
    );
}

/// Bytes that are mostly frames: those of a client, with faults here and there.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let frame = (any::<u8>(), any::<bool>(), 0..400_usize).prop_map(|(first, is_wide, payload)| {
        let first = if first < 16 {
            first
        } else {
            [0x81, 0x82, 0x89, 0x8a, 0x01, 0x80][usize::from(first % 6)]
        };
        let [high, low] = u16::try_from(payload).unwrap().to_be_bytes();
        match u8::try_from(payload) {
            Ok(length @ ..126) if !is_wide => masked(first, &[length], payload),
            _ => masked(first, &[126, high, low], payload),
        }
    });
    let frames = prop::collection::vec(frame, 0..20).prop_map(|frames| frames.concat());
    prop_oneof![4 => frames, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    /// Any cut of a stream into reads gives the same frames and the same fault.
    #[test]
    fn reads_make_no_difference(
        bytes in stream(),
        reads in prop::collection::vec(1..300_usize, 1..10),
        is_client in any::<bool>(),
    ) {
        let sender = if is_client { FrameSender::Client } else { FrameSender::Server };
        let (whole, _) = scan(sender, &bytes, &[bytes.len().max(1)]);
        let (cut, _) = scan(sender, &bytes, &reads);
        prop_assert_eq!(whole, cut);
    }

    /// Headers and payloads make up the stream, but for a header that is not complete and what follows a fault.
    #[test]
    fn no_byte_is_lost(bytes in stream()) {
        let (found, _) = scan(FrameSender::Server, &bytes, &[bytes.len().max(1)]);
        let passed: u64 = found
            .iter()
            .map(|found| match found {
                Found::Frame(_, header, payload) => *header as u64 + payload,
                Found::Fault(_) => 0,
            })
            .sum();
        prop_assert!(passed <= bytes.len() as u64);
        prop_assert!(bytes.len() as u64 - passed < 14);
    }
}
