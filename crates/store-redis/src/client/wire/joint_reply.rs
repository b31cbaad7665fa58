//! One reply to several calls.

use bytes::Bytes;

use super::element::Element;
use super::{Scanner, WireFault};

/// One reply to several calls, taken apart; iterates over their replies. An error is the reply to each.
#[derive(Debug)]
pub(crate) struct JointReply {
    rest: Rest,
    calls: usize,
}

#[derive(Debug)]
enum Rest {
    /// The same for all.
    Error(Bytes),
    /// One after the other.
    List(Bytes),
}

// === impl JointReply ===

impl JointReply {
    /// The reply to so many calls, of which a [`Scanner`] found the end.
    pub(crate) fn new(mut frame: Bytes, calls: usize) -> Result<Self, WireFault> {
        let rest = match Element::read(&frame, 0)? {
            Some((Element::Error(_), _)) => Rest::Error(frame),
            Some((Element::Array(length), next)) if length == calls => {
                Rest::List(frame.split_off(next))
            }
            _ => return Err(WireFault::OtherNumber),
        };
        Ok(Self { rest, calls })
    }
}

impl Iterator for JointReply {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.calls = self.calls.checked_sub(1)?;
        match &mut self.rest {
            Rest::Error(frame) => Some(frame.clone()),
            Rest::List(frame) => {
                let length = Scanner::default().scan(frame).ok().flatten()?;
                Some(frame.split_to(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(frame: &'static str, calls: usize) -> Result<Vec<Bytes>, WireFault> {
        let replies = JointReply::new(Bytes::from_static(frame.as_bytes()), calls)?;
        Ok(replies.collect())
    }

    #[test]
    fn each_call_has_its_reply_whatever_that_is() {
        let frame = "*4\r\n$2\r\nab\r\n-ERR no\r\n*2\r\n:1\r\n:2\r\n$-1\r\n";
        let replies = [
            "$2\r\nab\r\n",
            "-ERR no\r\n",
            "*2\r\n:1\r\n:2\r\n",
            "$-1\r\n",
        ];
        assert_eq!(split(frame, 4).unwrap(), replies);
    }

    #[test]
    fn an_error_is_the_reply_to_all() {
        assert_eq!(split("-BUSY\r\n", 2).unwrap(), ["-BUSY\r\n", "-BUSY\r\n"]);
    }

    #[test]
    fn a_reply_to_other_calls_is_none() {
        for frame in [
            "*1\r\n:1\r\n",
            "*3\r\n:1\r\n:2\r\n:3\r\n",
            ":2\r\n",
            "*-1\r\n",
        ] {
            assert_eq!(split(frame, 2), Err(WireFault::OtherNumber), "{frame}");
        }
    }
}
