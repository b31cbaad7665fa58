//! Which slot of a Cluster a key lies in.

/// The number of slots of every Cluster.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: by what is between its first braces, if that is not empty, else by all of it.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tag(key).unwrap_or(key)) % SLOTS
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|&byte| byte == b'{')?;
    let rest = &key[open + 1..];
    let close = rest.iter().position(|&byte| byte == b'}')?;
    (close > 0).then(|| &rest[..close])
}

/// CRC-16 as XMODEM has it: polynomial 0x1021, from 0, nothing reflected.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = table();
    bytes.iter().fold(0, |crc: u16, &byte| {
        let [high, _] = crc.to_be_bytes();
        (crc << 8) ^ TABLE[usize::from(high ^ byte)]
    })
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 });
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_where_redis_puts_them() {
        // As `CLUSTER KEYSLOT` says; the first is the check value of the specification.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, slot) in [
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("a{foo}{bar}", 12_182),
            ("foo{}", 5_542),
            ("{}foo", 9_500),
            ("foo{bar", 15_278),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }
}
