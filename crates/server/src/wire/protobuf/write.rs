//! Writing the fields of a message.

use bytes::{BufMut, BytesMut};

/// Writes fields at the end of a buffer. Fields that hold their default are left out, as proto3 has it.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut BytesMut);

/// How a field is written, in the low bits of its tag.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

// === impl Writer ===

impl Writer<'_> {
    /// A number, unless it is 0.
    pub(crate) fn uint(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.uint_even_zero(field, number);
        }
    }

    /// A number, for a field that knows presence.
    pub(crate) fn uint_even_zero(&mut self, field: u32, number: u64) {
        self.tag(field, VARINT);
        self.varint(number);
    }

    /// A float, for a field that knows presence.
    pub(crate) fn double(&mut self, field: u32, number: f64) {
        self.tag(field, FIXED64);
        self.0.put_f64_le(number);
    }

    /// Text or bytes, empty or not.
    pub(crate) fn bytes(&mut self, field: u32, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.tag(field, DELIMITED);
        // No message here is longer than 64 bits can say.
        self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(bytes);
    }

    /// A message, in one pass: its length goes to a byte that is kept for it, and only if that is too
    /// small is the message moved.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Writer<'_>)) {
        self.tag(field, DELIMITED);
        let start = self.0.len();
        self.0.put_u8(0);
        write(&mut Writer(self.0));
        let length = self.0.len() - start - 1;
        match u8::try_from(length) {
            Ok(byte @ 0..=0x7f) => self.0[start] = byte,
            _ => self.make_room_for_length(start, length),
        }
    }

    #[cold]
    fn make_room_for_length(&mut self, start: usize, length: usize) {
        let end = self.0.len();
        // Written behind the message first, and turned round then.
        self.varint(u64::try_from(length).unwrap_or(u64::MAX));
        let n_more = self.0.len() - end;
        // The byte that was kept is not needed any more.
        self.0[start..].rotate_right(n_more);
        let at = start + n_more;
        self.0.copy_within(at + 1.., at);
        self.0.truncate(self.0.len() - 1);
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.put_u8(low_bits(number) | 0x80);
            number >>= 7;
        }
        self.0.put_u8(low_bits(number));
    }
}

fn low_bits(number: u64) -> u8 {
    let [byte, ..] = number.to_le_bytes();
    byte & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> BytesMut {
        let mut buffer = BytesMut::new();
        write(&mut Writer(&mut buffer));
        buffer
    }

    #[test]
    fn defaults_are_left_out_unless_asked_for() {
        assert!(written(|it| it.uint(1, 0)).is_empty());
        assert_eq!(written(|it| it.uint_even_zero(1, 0))[..], [0x08, 0]);
        assert_eq!(written(|it| it.uint(1, 300))[..], [0x08, 0xac, 0x02]);
        assert_eq!(written(|it| it.bytes(2, ""))[..], [0x12, 0]);
    }

    #[test]
    fn a_message_of_any_length_has_its_length_before_it() {
        for length in [0, 1, 127 - 2, 128 - 2, 300, 16_383, 16_384, 70_000] {
            let text = "x".repeat(length);
            let buffer = written(|outer| {
                outer.uint(1, 7);
                outer.message(2, |inner| inner.bytes(3, &text));
                outer.uint(4, 8);
            });
            let expected = {
                let mut inner = BytesMut::new();
                Writer(&mut inner).bytes(3, &text);
                written(|outer| {
                    outer.uint(1, 7);
                    outer.bytes(2, &inner);
                    outer.uint(4, 8);
                })
            };
            assert_eq!(buffer, expected, "{length}");
        }
    }
}
