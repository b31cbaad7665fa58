//! Public keys as PEM files hold them: `SubjectPublicKeyInfo` in DER (RFC 5280, section 4.1).
//!
//! Reads the three kinds of keys that tokens are signed with, and nothing else of ASN.1.

/// A public key taken out of its wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublicKey<'a> {
    /// Modulus and exponent, each without leading zeros.
    Rsa { n: &'a [u8], e: &'a [u8] },
    /// A point of the curve P-256, uncompressed.
    P256(&'a [u8]),
    /// A point of the curve Ed25519.
    Ed25519(&'a [u8]),
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// `rsaEncryption`, with the null that stands for its parameters (RFC 3279, section 2.3.1).
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

/// `id-ecPublicKey` with the curve `secp256r1` (RFC 5480, section 2.1.1).
const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";

/// `id-Ed25519` (RFC 8410, section 3).
const ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

/// Reads a key; `None` if it is of another kind or damaged.
pub(super) fn read(der: &[u8]) -> Option<PublicKey<'_>> {
    let inside = only(element(der, SEQUENCE)?)?;
    let (algorithm, rest) = element(inside, SEQUENCE)?;
    let bits = only(element(rest, BIT_STRING)?)?;
    // The first byte counts the unused bits at the end; keys are whole bytes.
    let key = bits.strip_prefix(&[0])?;
    match algorithm {
        RSA => {
            let (n, rest) = element(only(element(key, SEQUENCE)?)?, INTEGER)?;
            let e = only(element(rest, INTEGER)?)?;
            Some(PublicKey::Rsa {
                n: without_zeros(n),
                e: without_zeros(e),
            })
        }
        P256 => Some(PublicKey::P256(key)),
        ED25519 => Some(PublicKey::Ed25519(key)),
        _ => None,
    }
}

/// A big-endian number without leading zeros.
pub(super) fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// Splits off the first element, which must have this tag: its content, and the bytes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (length, rest) = match rest {
        [length @ 0..=0x7f, rest @ ..] | [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        // No key that is accepted needs more than 64 KiB.
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The content of an element after which nothing follows.
const fn only<'a>((content, rest): (&'a [u8], &[u8])) -> Option<&'a [u8]> {
    if rest.is_empty() { Some(content) } else { None }
}
