//! A decision as the ring holds it: words of a fixed meaning.

use std::time::Duration;

use tidegate_limiter::{DecisionPath, Retry};

use super::{DecisionClock, DecisionId, RecordedAnswer, RecordedCounter};

/// The words of a record. With its version a slot has 96 bytes, so that 65,536 of them take 6 MB.
pub(super) const N_WORDS: usize = 11;

/// A decision in words. Ordered by time, then by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedDecision(pub(super) [u64; N_WORDS]);

/// A decision whose names are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedDecision {
    pub(super) id: DecisionId,
    /// Tells it from every other decision; later ones of the same thread have greater numbers.
    pub(super) number: u64,
    pub(super) time: Duration,
    pub(super) clock: DecisionClock,
    pub(super) answer: RecordedAnswer,
    pub(super) path: DecisionPath,
    pub(super) rule: u32,
    pub(super) route: u32,
    pub(super) limit_index: u16,
    pub(super) n_limits: u16,
    pub(super) cost: u64,
    pub(super) counter: Option<RecordedCounter>,
    pub(super) retry: Option<Retry>,
}

const ANSWERS: [RecordedAnswer; 3] = [
    RecordedAnswer::Allowed,
    RecordedAnswer::Denied,
    RecordedAnswer::Shadowed,
];

/// Bits of the last byte of the flags.
const HAS_COUNTER: u64 = 1;
const HAS_RETRY: u64 = 2;
const NEVER: u64 = 4;
const NODE_CLOCK: u64 = 8;

// === impl PackedDecision ===

impl PackedDecision {
    pub(super) fn id(&self) -> DecisionId {
        DecisionId(self.0[2])
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_nanos(self.0[0])
    }

    pub(super) fn is_denied(&self) -> bool {
        self.answer() == RecordedAnswer::Denied
    }

    fn answer(&self) -> RecordedAnswer {
        let byte = self.0[10].to_le_bytes()[4];
        let answer = ANSWERS.get(usize::from(byte)).copied();
        answer.unwrap_or(RecordedAnswer::Allowed)
    }
}

impl From<&NumberedDecision> for PackedDecision {
    fn from(decision: &NumberedDecision) -> Self {
        let counter = decision.counter.unwrap_or(RecordedCounter {
            limit: 0,
            remaining_before: 0,
            remaining_after: 0,
            reset_after: Duration::ZERO,
        });
        let mut bits = 0;
        if decision.counter.is_some() {
            bits |= HAS_COUNTER;
        }
        if decision.clock == DecisionClock::Node {
            bits |= NODE_CLOCK;
        }
        let retry = match decision.retry {
            None => 0,
            Some(Retry::Never) => {
                bits |= HAS_RETRY | NEVER;
                0
            }
            Some(Retry::After(wait)) => {
                bits |= HAS_RETRY;
                nanos(wait)
            }
        };
        let flags = u64::from(decision.limit_index)
            | u64::from(decision.n_limits) << 16
            | (decision.answer as u64) << 32
            | (decision.path as u64) << 40
            | bits << 48;
        Self([
            nanos(decision.time),
            decision.number,
            decision.id.0,
            counter.limit,
            counter.remaining_before,
            counter.remaining_after,
            decision.cost,
            retry,
            nanos(counter.reset_after),
            u64::from(decision.rule) | u64::from(decision.route) << 32,
            flags,
        ])
    }
}

impl From<&PackedDecision> for NumberedDecision {
    fn from(packed: &PackedDecision) -> Self {
        let [
            time,
            number,
            _,
            limit,
            before,
            after,
            cost,
            retry,
            reset,
            names,
            flags,
        ] = packed.0;
        let bits = flags >> 48;
        let path = DecisionPath::ALL
            .into_iter()
            .find(|path| *path as u64 == flags >> 40 & 0xff);
        let counter = RecordedCounter {
            limit,
            remaining_before: before,
            remaining_after: after,
            reset_after: Duration::from_nanos(reset),
        };
        let retry = if bits & NEVER == 0 {
            Retry::After(Duration::from_nanos(retry))
        } else {
            Retry::Never
        };
        Self {
            id: packed.id(),
            number,
            time: Duration::from_nanos(time),
            clock: if bits & NODE_CLOCK == 0 {
                DecisionClock::Store
            } else {
                DecisionClock::Node
            },
            answer: packed.answer(),
            path: path.unwrap_or_default(),
            rule: low_half(names),
            route: low_half(names >> 32),
            limit_index: low_quarter(flags),
            n_limits: low_quarter(flags >> 16),
            cost,
            counter: (bits & HAS_COUNTER != 0).then_some(counter),
            retry: (bits & HAS_RETRY != 0).then_some(retry),
        }
    }
}

/// Saturates after 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default()
}

fn low_quarter(word: u64) -> u16 {
    u16::try_from(word & u64::from(u16::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retries() -> impl Strategy<Value = Option<Retry>> {
        prop_oneof![
            Just(None),
            Just(Some(Retry::Never)),
            any::<u64>().prop_map(|nanos| Some(Retry::After(Duration::from_nanos(nanos)))),
        ]
    }

    fn counters() -> impl Strategy<Value = Option<RecordedCounter>> {
        let numbers = any::<(u64, u64, u64, u64)>();
        prop::option::of(
            numbers.prop_map(|(limit, before, after, reset)| RecordedCounter {
                limit,
                remaining_before: before,
                remaining_after: after,
                reset_after: Duration::from_nanos(reset),
            }),
        )
    }

    fn decisions() -> impl Strategy<Value = NumberedDecision> {
        let clocks = prop::sample::select(vec![DecisionClock::Store, DecisionClock::Node]);
        let answers = prop::sample::select(ANSWERS.to_vec());
        let paths = prop::sample::select(DecisionPath::ALL.to_vec());
        let numbers = any::<(u64, u64, u64, u64)>();
        let names = any::<(u32, u32, u16, u16)>();
        let words = (clocks, answers, paths, counters(), retries());
        (numbers, names, words).prop_map(|(numbers, names, words)| NumberedDecision {
            id: DecisionId(numbers.0),
            number: numbers.1,
            time: Duration::from_nanos(numbers.2),
            clock: words.0,
            answer: words.1,
            path: words.2,
            rule: names.0,
            route: names.1,
            limit_index: names.2,
            n_limits: names.3,
            cost: numbers.3,
            counter: words.3,
            retry: words.4,
        })
    }

    proptest! {
        /// A decision is read back as it was written.
        #[test]
        fn words_lose_nothing(decision in decisions()) {
            let packed = PackedDecision::from(&decision);
            prop_assert_eq!(NumberedDecision::from(&packed), decision);
        }
    }
}
