use super::*;
use crate::LimitId;

/// Any difference between two keys is a difference of their hashes, whatever their parts make when
/// joined.
#[test]
fn keys_that_differ_have_other_hashes() {
    let fingerprinter = Fingerprinter::random();
    let long = "x".repeat(2 * INLINE);
    let lists: [&[&str]; 12] = [
        &[],
        &[""],
        &["", ""],
        &["abc"],
        &["a", "bc"],
        &["ab", "c"],
        &["a", "b", "c"],
        &["\u{1}\0\0\0a\u{2}\0\0\0bc"],
        &[&long],
        &[&long, ""],
        &["", &long],
        &[&long[1..], "x"],
    ];
    let mut hashes = Vec::new();
    for limit in [0, 1, 1 << 64, u128::MAX] {
        for values in lists {
            let key = CounterKey {
                limit: LimitId(limit),
                values,
            };
            assert_eq!(fingerprinter.hash(key), fingerprinter.hash(key));
            hashes.push(fingerprinter.hash(key));
        }
    }
    let all = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), all);
}

/// Two processes hash differently: nobody can prepare keys that collide.
#[test]
fn hashes_have_a_secret() {
    let key = CounterKey {
        limit: LimitId(1),
        values: &["a"],
    };
    assert_ne!(
        Fingerprinter::random().hash(key),
        Fingerprinter::random().hash(key)
    );
}
