//! Replies of any shape, as the answers to all that is asked of Redis: decisions, loans, totals, members, versions of
//! rules, slots of a Cluster, masters, INFO. Each is read or refused, without a crash.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use tidegate_store_redis::client::Reply;
use tidegate_store_redis::test_util::{read_reply, read_text};

#[derive(Arbitrary, Debug)]
enum Answer<'a> {
    Number(i64),
    /// One of those that slots, ports and counts are.
    Small(u16),
    Text(&'a [u8]),
    /// Numbers with what stands between them in stored states.
    Numbers(Vec<(u64, Mark)>),
    Error(&'a str),
    Nil,
    List(Vec<Answer<'a>>),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Mark {
    Colon,
    At,
    Dot,
    Space,
    Minus,
}

impl Answer<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => out.extend(format!(":{number}\r\n").bytes()),
            Self::Small(number) => out.extend(format!(":{number}\r\n").bytes()),
            Self::Text(text) => bulk(out, text),
            Self::Numbers(numbers) => bulk(out, text(numbers).as_bytes()),
            Self::Error(text) => {
                let text = text.replace(['\r', '\n'], " ");
                out.extend(format!("-{text}\r\n").bytes());
            }
            Self::Nil => out.extend(b"$-1\r\n"),
            Self::List(answers) => {
                out.extend(format!("*{}\r\n", answers.len()).bytes());
                for answer in answers {
                    answer.write(out);
                }
            }
        }
    }
}

fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(format!("${}\r\n", text.len()).bytes());
    out.extend(text);
    out.extend(b"\r\n");
}

fn text(numbers: &[(u64, Mark)]) -> String {
    let mut text = String::new();
    for (number, mark) in numbers {
        text.push_str(&number.to_string());
        text.push(match mark {
            Mark::Colon => ':',
            Mark::At => '@',
            Mark::Dot => '.',
            Mark::Space => ' ',
            Mark::Minus => '-',
        });
    }
    // Nothing stands behind the last one, as a rule.
    text.pop();
    text
}

fuzz_target!(|answer: Answer<'_>| {
    let mut bytes = Vec::new();
    answer.write(&mut bytes);
    if let Some(reply) = Reply::parse(&bytes) {
        read_reply(&reply);
    }
    if let Answer::Text(text) = answer {
        read_text(text);
    }
});
