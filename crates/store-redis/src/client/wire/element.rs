//! One element of a reply.

use super::{MAX_FRAME, WireFault};

/// What stands at one place of a reply. An array is its head only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Nil,
    Array(usize),
}

/// An element and where the next one begins; `None` if there are not enough bytes yet.
pub(super) type Parsed<'a> = Result<Option<(Element<'a>, usize)>, WireFault>;

/// The longest line; errors of scripts quote some of the script.
const MAX_LINE: usize = 64 * 1024;

// === impl Element ===

impl<'a> Element<'a> {
    /// Reads the element that begins at `start`.
    pub(super) fn read(bytes: &'a [u8], start: usize) -> Parsed<'a> {
        let Some((&kind, rest)) = bytes.get(start..).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
            return Err(WireFault::UnknownType(kind));
        }
        let Some(line) = line(rest)? else {
            return Ok(None);
        };
        let next = start + 1 + line.len() + 2;
        let element = match kind {
            b'+' => Self::Simple(line),
            b'-' => Self::Error(line),
            b':' => Self::Integer(number(line)?),
            b'*' => length(line)?.map_or(Self::Nil, Self::Array),
            _ => {
                return match length(line)? {
                    None => Ok(Some((Self::Nil, next))),
                    Some(length) => Self::bulk(bytes, next, length),
                };
            }
        };
        Ok(Some((element, next)))
    }

    fn bulk(bytes: &'a [u8], start: usize, length: usize) -> Parsed<'a> {
        let end = start + length;
        let Some(ending) = bytes.get(end..end + 2) else {
            return Ok(None);
        };
        if ending != b"\r\n" {
            return Err(WireFault::BadEnd);
        }
        Ok(Some((Self::Bulk(&bytes[start..end]), end + 2)))
    }
}

/// A line without its end; `None` if the end is not there yet.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, WireFault> {
    let seen = &bytes[..bytes.len().min(MAX_LINE)];
    match seen.iter().position(|&byte| byte == b'\r') {
        Some(end) => match bytes.get(end + 1) {
            Some(b'\n') => Ok(Some(&bytes[..end])),
            Some(_) => Err(WireFault::BadEnd),
            None => Ok(None),
        },
        None if seen.len() == MAX_LINE => Err(WireFault::TooLong),
        None => Ok(None),
    }
}

/// A length, or `None` for -1, which stands for nothing at all.
fn length(line: &[u8]) -> Result<Option<usize>, WireFault> {
    let length = number(line)?;
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| WireFault::BadNumber)?;
    if length > MAX_FRAME {
        return Err(WireFault::TooLong);
    }
    Ok(Some(length))
}

fn number(line: &[u8]) -> Result<i64, WireFault> {
    str::from_utf8(line)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(WireFault::BadNumber)
}
