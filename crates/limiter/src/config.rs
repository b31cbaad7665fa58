//! How a limiter behaves where the rules do not say.

use tidegate_store::{Charging, Consistency};

/// What a limiter is told once, for all rules.
#[derive(Clone, Copy, Debug)]
pub struct LimiterConfig {
    /// How a request with several limits is charged, where its domain does not say.
    pub charging: Charging,
    /// How nodes share a limit, where its rule does not say.
    pub consistency: Consistency,
    /// From which share of a limit on its use is marked as near.
    pub near: NearRatio,
    /// Whether refusals are only reported.
    pub shadow: GlobalShadow,
    /// The answer to a look at a limit that is just used up where the limit counts what it denies.
    pub looks: LooksAtLimit,
}

/// The share of a limit above which its use is marked as near, in millionths: an integer, because no
/// float may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearRatio(u32);

/// Whether the limiter as a whole only watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GlobalShadow {
    /// Refusals refuse.
    #[default]
    Off,
    /// Every request passes; its statuses, and what is charged, are those of a limiter that refuses.
    On,
}

/// The answer to a look (a cost of 0) when exactly the limit is used, by fixed windows that count what they deny.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LooksAtLimit {
    /// Denied, as by any other limit: a cost of 1 would not fit.
    #[default]
    Deny,
    /// Allowed, as by envoyproxy/ratelimit. The debit after it is counted, and the next look denied.
    Allow,
}

// === impl LimiterConfig ===

impl LimiterConfig {
    /// All or none, every decision in the store, near above 0.8, refusals refuse, looks at a full limit are denied.
    pub const DEFAULT: Self = Self {
        charging: Charging::AllOrNone,
        consistency: Consistency::Strict,
        near: NearRatio::DEFAULT,
        shadow: GlobalShadow::Off,
        looks: LooksAtLimit::Deny,
    };
}

impl Default for LimiterConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

// === impl NearRatio ===

impl NearRatio {
    /// 0.8, as envoyproxy/ratelimit has it.
    pub const DEFAULT: Self = Self(800_000);

    const WHOLE: u32 = 1_000_000;

    /// Builds a ratio from millionths, saturating at the whole limit.
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(if millionths > Self::WHOLE {
            Self::WHOLE
        } else {
            millionths
        })
    }

    /// The use of `limit` above which it is near, rounded down.
    pub fn threshold(self, limit: u64) -> u64 {
        // Divisions of 128 bits are slow, and limits above 2^44 rare.
        if let Some(product) = limit.checked_mul(u64::from(self.0)) {
            return product / u64::from(Self::WHOLE);
        }
        let threshold = u128::from(limit) * u128::from(self.0) / u128::from(Self::WHOLE);
        // The ratio is at most one, so the threshold is at most the limit.
        u64::try_from(threshold).unwrap_or(limit)
    }
}

impl Default for NearRatio {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::NearRatio;

    #[test]
    fn the_threshold_is_rounded_down_and_never_above_the_limit() {
        let eighty = NearRatio::default();
        assert_eq!(eighty.threshold(20), 16);
        assert_eq!(eighty.threshold(3), 2);
        assert_eq!(eighty.threshold(1), 0);
        assert_eq!(eighty.threshold(0), 0);
        assert_eq!(
            NearRatio::from_millionths(u32::MAX).threshold(u64::MAX),
            u64::MAX
        );
        assert_eq!(NearRatio::from_millionths(0).threshold(u64::MAX), 0);
    }
}
