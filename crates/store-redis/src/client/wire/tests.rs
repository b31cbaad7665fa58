use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A reply as a tree.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Integer(i64),
    Simple(String),
    Bulk(Vec<u8>),
    Nil,
    NilArray,
    Error(String),
    Array(Vec<Tree>),
}

impl Tree {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(integer) => out.extend(format!(":{integer}\r\n").bytes()),
            Self::Simple(text) => out.extend(format!("+{text}\r\n").bytes()),
            Self::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            Self::Nil => out.extend(b"$-1\r\n"),
            Self::NilArray => out.extend(b"*-1\r\n"),
            Self::Bulk(bytes) => {
                out.extend(format!("${}\r\n", bytes.len()).bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Self::Array(trees) => {
                out.extend(format!("*{}\r\n", trees.len()).bytes());
                for tree in trees {
                    tree.write(out);
                }
            }
        }
    }

    fn matches(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Integer(integer), Value::Integer(read)) => *integer == read,
            (Self::Simple(text), Value::Text(read)) | (Self::Error(text), Value::Error(read)) => {
                text.as_bytes() == read
            }
            (Self::Bulk(bytes), Value::Text(read)) => bytes == read,
            (Self::Nil | Self::NilArray, Value::Nil) => true,
            (Self::Array(trees), Value::Array(read)) => {
                read.len() == trees.len()
                    && trees
                        .iter()
                        .zip(read)
                        .all(|(tree, value)| tree.matches(value))
            }
            _ => false,
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Tree::Integer),
        "[ -~]{0,20}".prop_map(Tree::Simple),
        "[ -~]{0,20}".prop_map(Tree::Error),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Tree::Bulk),
        Just(Tree::Nil),
        Just(Tree::NilArray),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop::collection::vec(inner, 0..8).prop_map(Tree::Array)
    })
}

/// Reads all of a value, as deep as it goes.
fn read_all(value: Value<'_>) -> usize {
    match value {
        Value::Array(values) => values.map(read_all).sum::<usize>() + 1,
        _ => 1,
    }
}

proptest! {
    /// Replies that come in pieces of any size are found whole, one after the other, and say what was
    /// written.
    #[test]
    fn replies_are_found_in_any_pieces(
        replies in prop::collection::vec(trees(), 1..6),
        piece in 1_usize..50,
    ) {
        let mut wire = Vec::new();
        for reply in &replies {
            reply.write(&mut wire);
        }
        let (mut read, mut found) = (Vec::new(), Vec::new());
        let mut scanner = Scanner::default();
        for piece in wire.chunks(piece) {
            read.extend_from_slice(piece);
            while let Some(length) = scanner.scan(&read).unwrap() {
                let rest = read.split_off(length);
                found.push(Reply::new(Bytes::from(std::mem::replace(&mut read, rest))));
            }
        }
        prop_assert!(read.is_empty());
        prop_assert_eq!(found.len(), replies.len());
        for (reply, found) in replies.iter().zip(&found) {
            prop_assert!(reply.matches(found.value()), "{:?} is not {:?}", found, reply);
        }
    }

    /// Whatever a server sends, it is a reply, the beginning of one, or a fault.
    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(
        prop_oneof![prop::sample::select(b"+-:$*\r\n0123456789".to_vec()), any::<u8>()], 0..200,
    )) {
        if let Ok(Some(length)) = Scanner::default().scan(&bytes) {
            prop_assert!(length <= bytes.len());
            let reply = Reply::parse(&bytes[..length]).expect("it is one");
            read_all(reply.value());
        }
    }
}

#[test]
fn what_is_no_resp_is_a_fault() {
    let fault = |bytes: &[u8]| Scanner::default().scan(bytes).unwrap_err();
    assert_eq!(fault(b"HTTP/1.1 400"), WireFault::UnknownType(b'H'));
    assert_eq!(fault(b":12a\r\n"), WireFault::BadNumber);
    assert_eq!(fault(b":\r\n"), WireFault::BadNumber);
    assert_eq!(fault(b"$-2\r\n"), WireFault::BadNumber);
    assert_eq!(fault(b"+a\rb"), WireFault::BadEnd);
    assert_eq!(fault(b"$1\r\nabc"), WireFault::BadEnd);
    assert_eq!(fault(b"$99999999999\r\n"), WireFault::TooLong);
    assert_eq!(fault(b"*60000000\r\n"), WireFault::TooLong);
    assert_eq!(fault(&b"+".repeat(70_000)), WireFault::TooLong);
}

#[test]
fn a_deep_reply_is_read_without_recursion() {
    let mut wire = b"*1\r\n".repeat(100_000);
    wire.extend_from_slice(b":7\r\n");
    assert_eq!(Scanner::default().scan(&wire), Ok(Some(wire.len())));
    let reply = Reply::parse(&wire).expect("it is one");
    assert!(format!("{reply:?}").len() < 100);
    assert_eq!(reply.array().map(|array| array.len()), Ok(1));
}
