//! Points in time: nanoseconds since the Unix epoch, and the finer ticks that buckets count in.

use std::time::Duration;

/// A point in time in nanoseconds since the Unix epoch, as the store's clock gave it.
///
/// Never above [`Time::MAX`], so that sums of a time and a window cannot wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A point in time, or a span, in 2^-32 nanoseconds: fine enough that a billion tokens a second
/// keep their rate to a part in a billion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u128);

// === impl Time ===

impl Time {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);

    /// 2^62 ns, in the year 2116. Later times saturate here.
    pub const MAX: Self = Self(1 << 62);

    /// Builds a time from nanoseconds since the Unix epoch, saturating at [`Time::MAX`].
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 {
            Self::MAX
        } else {
            Self(nanos)
        }
    }

    /// Builds a time from microseconds since the Unix epoch, saturating at [`Time::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This time plus `span`, saturating at [`Time::MAX`].
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self::from_nanos(self.0.saturating_add(nanos))
    }

    /// How long after `earlier` this time is; zero if it is not after.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

// === impl Ticks ===

impl Ticks {
    /// Ticks in a nanosecond.
    pub const PER_NANO: u128 = 1 << 32;

    /// The ticks at `time`.
    pub fn at(time: Time) -> Self {
        Self::from_nanos(time.nanos())
    }

    /// The ticks of whole nanoseconds.
    #[inline]
    pub fn from_nanos(nanos: u64) -> Self {
        Self(u128::from(nanos) << 32)
    }

    /// The nanoseconds, if they are whole and fit.
    #[inline]
    pub fn whole_nanos(self) -> Option<u64> {
        if self.0 & (Self::PER_NANO - 1) != 0 {
            return None;
        }
        u64::try_from(self.0 >> 32).ok()
    }

    /// The first whole nanosecond that is not before these ticks, saturating at [`Time::MAX`].
    pub fn ceil(self) -> Time {
        let nanos = self.0.div_ceil(Self::PER_NANO);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
