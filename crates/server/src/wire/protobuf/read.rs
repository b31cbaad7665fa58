//! Reading the fields of a message.

use std::str;

/// Reads one message, field by field.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// What a field holds, by how it is written. What the writing means is for the field to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the message breaks off")]
    Truncated,
    #[error("a number has more than 64 bits")]
    LongVarint,
    #[error("a field has a number that no field can have")]
    BadFieldNumber,
    #[error("field {field} is a group or of no known wire type")]
    BadWireType { field: u32 },
    #[error("field {field} is of another type")]
    WrongType { field: u32 },
    #[error("field {field} is not UTF-8")]
    NotUtf8 { field: u32 },
}

/// The largest number of a field.
const MAX_FIELD: u64 = (1 << 29) - 1;

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field, by number, or `None` at the end of the message.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        let field = u32::try_from(number)
            .ok()
            .filter(|_| (1..=MAX_FIELD).contains(&number))
            .ok_or(Malformed::BadFieldNumber)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Value::Bytes(self.delimited()?),
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed::BadWireType { field }),
        };
        Ok(Some((field, value)))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        // Tags, lengths and most numbers are one byte.
        if let [byte @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Malformed::Truncated)?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(Malformed::LongVarint);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::LongVarint)
    }

    fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed::Truncated)?;
        let split = self.rest.split_at_checked(length);
        let (bytes, rest) = split.ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

// === impl Value ===

impl<'a> Value<'a> {
    /// A message, a list of bytes.
    pub(crate) fn bytes(self, field: u32) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::WrongType { field }),
        }
    }

    /// Text, which must be UTF-8.
    pub(crate) fn text(self, field: u32) -> Result<&'a str, Malformed> {
        str::from_utf8(self.bytes(field)?).map_err(|_| Malformed::NotUtf8 { field })
    }

    /// A number of 64 bits.
    pub(crate) fn uint64(self, field: u32) -> Result<u64, Malformed> {
        match self {
            Self::Varint(number) => Ok(number),
            _ => Err(Malformed::WrongType { field }),
        }
    }

    /// A number of 32 bits. Further bits are cut off: the protocol has it so, that a field may have been
    /// wider once.
    pub(crate) fn uint32(self, field: u32) -> Result<u64, Malformed> {
        Ok(self.uint64(field)? & u64::from(u32::MAX))
    }

    /// Yes or no.
    pub(crate) fn bool(self, field: u32) -> Result<bool, Malformed> {
        Ok(self.uint64(field)? != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_how_they_are_written() {
        let message = [
            0x08, 0x96, 0x01, // field 1: 150
            0x12, 0x02, b'h', b'i', // field 2: "hi"
            0x1d, 1, 0, 0, 0, // field 3, four bytes
            0x21, 2, 0, 0, 0, 0, 0, 0, 0, // field 4, eight bytes
        ];
        let mut reader = Reader::new(&message);
        assert_eq!(reader.next(), Ok(Some((1, Value::Varint(150)))));
        assert_eq!(reader.next(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(reader.next(), Ok(Some((3, Value::Fixed32(1)))));
        assert_eq!(reader.next(), Ok(Some((4, Value::Fixed64(2)))));
        assert_eq!(reader.next(), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_named() {
        let check = |message: &[u8], expected| {
            assert_eq!(Reader::new(message).next(), Err(expected), "{message:?}");
        };
        check(&[0x80], Malformed::Truncated);
        check(&[0x08], Malformed::Truncated);
        check(&[0x12, 3, b'h', b'i'], Malformed::Truncated);
        check(&[0x1d, 1, 0, 0], Malformed::Truncated);
        check(
            &[
                0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
            ],
            Malformed::Truncated,
        );
        check(&[0x00, 1], Malformed::BadFieldNumber);
        check(
            &[0x80, 0x80, 0x80, 0x80, 0x10, 1],
            Malformed::BadFieldNumber,
        );
        check(&[0x0b], Malformed::BadWireType { field: 1 });
        check(&[0x0c], Malformed::BadWireType { field: 1 });
        check(&[0x0f], Malformed::BadWireType { field: 1 });
        check(
            &[&[0x08][..], &[0xff; 9], &[2]].concat(),
            Malformed::LongVarint,
        );
        check(
            &[&[0x08][..], &[0x80; 10], &[0]].concat(),
            Malformed::LongVarint,
        );
    }

    #[test]
    fn the_largest_number_is_read() {
        let message = [&[0x08][..], &[0xff; 9], &[1]].concat();
        let (field, value) = Reader::new(&message).next().unwrap().unwrap();
        assert_eq!(value.uint64(field), Ok(u64::MAX));
        assert_eq!(value.uint32(field), Ok(u64::from(u32::MAX)));
    }
}
