//! How long calls take.

/// The upper bounds of the buckets in nanoseconds, each with the text that a metric shows in seconds: the
/// powers of two from a microsecond to four seconds. A call over loopback takes some tens of microseconds.
pub const BOUNDS: [(u64, &str); 23] = [
    (1_000, "0.000001"),
    (2_000, "0.000002"),
    (4_000, "0.000004"),
    (8_000, "0.000008"),
    (16_000, "0.000016"),
    (32_000, "0.000032"),
    (64_000, "0.000064"),
    (128_000, "0.000128"),
    (256_000, "0.000256"),
    (512_000, "0.000512"),
    (1_024_000, "0.001024"),
    (2_048_000, "0.002048"),
    (4_096_000, "0.004096"),
    (8_192_000, "0.008192"),
    (16_384_000, "0.016384"),
    (32_768_000, "0.032768"),
    (65_536_000, "0.065536"),
    (131_072_000, "0.131072"),
    (262_144_000, "0.262144"),
    (524_288_000, "0.524288"),
    (1_048_576_000, "1.048576"),
    (2_097_152_000, "2.097152"),
    (4_194_304_000, "4.194304"),
];

/// How long calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// How many were within each of the [`BOUNDS`] and above the one before; the last are above all.
    pub buckets: [u64; BOUNDS.len() + 1],
    /// All of them together, in nanoseconds.
    pub sum_nanos: u64,
}

// === impl Latencies ===

impl Latencies {
    /// How many calls there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bounds_are_powers_of_two_and_say_what_they_are() {
        for (power, (nanos, text)) in BOUNDS.iter().enumerate() {
            assert_eq!(*nanos, 1_000 << power);
            let seconds: f64 = text.parse().unwrap();
            let told = Duration::from_secs_f64(seconds);
            assert_eq!(told, Duration::from_nanos(*nanos));
        }
    }
}
