//! The trace that a request is part of, as W3C's Trace Context (level 1) writes it.

/// The trace that a request is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace. Never all zero.
    pub trace_id: [u8; 16],
    /// The span of the caller. Never all zero.
    pub parent_id: [u8; 8],
    /// Whether the caller traces the request.
    pub sampled: bool,
}

// === impl TraceContext ===

impl TraceContext {
    /// Reads the header `traceparent`. `None` if it is not valid: then the request has no trace.
    ///
    /// A version later than ours is read as far as ours goes, as the standard asks.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let bytes = traceparent.as_bytes();
        let (known, rest) = bytes.split_at_checked(55)?;
        let [version] = hex(&known[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let has_dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        let context = Self {
            trace_id: hex(&known[3..35])?,
            parent_id: hex(&known[36..52])?,
            sampled: hex::<1>(&known[53..])?[0] & 1 == 1,
        };
        let has_ids = context.trace_id != [0; 16] && context.parent_id != [0; 8];
        (is_whole && has_dashes && has_ids).then_some(context)
    }
}

/// The bytes that `digits` spell in lower case, if they are as many as asked for.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn spell(bytes: &[u8]) -> String {
        let mut text = String::new();
        for byte in bytes {
            write!(text, "{byte:02x}").unwrap();
        }
        text
    }

    #[test]
    fn reads_what_the_standard_shows() {
        let context = TraceContext::parse(GOOD).unwrap();
        assert_eq!(spell(&context.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(spell(&context.parent_id), "00f067aa0ba902b7");
        assert!(context.sampled);
        let unsampled = TraceContext::parse(&GOOD.replace("-01", "-00")).unwrap();
        assert!(!unsampled.sampled);
        // Other flags say nothing about sampling.
        assert!(
            !TraceContext::parse(&GOOD.replace("-01", "-fe"))
                .unwrap()
                .sampled
        );
    }

    #[test]
    fn reads_later_versions_as_far_as_it_can() {
        let later = GOOD.replace("00-4", "cc-4");
        assert_eq!(TraceContext::parse(&later), TraceContext::parse(GOOD));
        let longer = format!("{later}-what-will-be");
        assert_eq!(TraceContext::parse(&longer), TraceContext::parse(GOOD));
        assert_eq!(TraceContext::parse(&format!("{later}.x")), None);
    }

    #[test]
    fn refuses_what_is_not_valid() {
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!("{GOOD}-00"),
            &format!(" {GOOD}"),
            &GOOD.replace("00-4", "ff-4"),
            &GOOD.to_uppercase(),
            &GOOD.replace("4bf9", "4bfg"),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn stands_any_text(text in ".{0,80}") {
            let _ = TraceContext::parse(&text);
        }

        /// One byte off is either another valid header or none, and never a panic.
        #[test]
        fn stands_any_change(at in 0_usize..55, byte in 0_u8..128) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let text = String::from_utf8(bytes).unwrap();
            if let Some(context) = TraceContext::parse(&text) {
                let flags = u8::from(context.sampled);
                let (trace, parent) = (spell(&context.trace_id), spell(&context.parent_id));
                prop_assert_eq!(&text[3..52], format!("{trace}-{parent}"));
                prop_assert_eq!(u8::from_str_radix(&text[53..55], 16).unwrap() & 1, flags);
            }
        }

        #[test]
        fn reads_back_what_was_written(trace: [u8; 16], parent: [u8; 8], flags: u8) {
            prop_assume!(trace != [0; 16] && parent != [0; 8]);
            let text = format!("00-{}-{}-{flags:02x}", spell(&trace), spell(&parent));
            let context = TraceContext::parse(&text).unwrap();
            prop_assert_eq!(context.trace_id, trace);
            prop_assert_eq!(context.parent_id, parent);
            prop_assert_eq!(context.sampled, flags & 1 == 1);
        }
    }
}
