//! A short list of numbers, in few bytes while they are small.

/// An item that has a short form if its numbers are small.
pub(super) trait Pack: Copy {
    /// The short form: some bytes.
    type Short: Copy + std::fmt::Debug;
    /// The short form of an item of which all is zero.
    const ZERO: Self::Short;

    /// The short form, if it says all.
    fn pack(self) -> Option<Self::Short>;

    fn unpack(short: Self::Short) -> Self;
}

/// A list: without an allocation while it has at most `N` items and each has a short form.
#[derive(Clone, Debug)]
pub(super) enum PackedList<T: Pack, const N: usize> {
    Short { len: u8, items: [T::Short; N] },
    Long(Vec<T>),
}

// === impl PackedList ===

impl<T: Pack, const N: usize> PackedList<T, N> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Short { len, .. } => usize::from(*len),
            Self::Long(items) => items.len(),
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<T> {
        match self {
            Self::Short { len, items } => {
                let items = items.get(..usize::from(*len))?;
                items.get(place).copied().map(T::unpack)
            }
            Self::Long(items) => items.get(place).copied(),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Replaces an item, or adds one if `place` is the first that is free.
    pub(super) fn set(&mut self, place: usize, item: T) {
        match self {
            Self::Short { len, items } => {
                let short = item.pack().filter(|_| place < N);
                if let Some(short) = short {
                    items[place] = short;
                    let after = u8::try_from(place + 1).unwrap_or(u8::MAX);
                    *len = after.max(*len);
                } else {
                    let mut long = Vec::with_capacity(N.max(place + 1));
                    long.extend(self.iter());
                    *self = Self::Long(long);
                    self.set(place, item);
                }
            }
            Self::Long(items) => {
                if let Some(old) = items.get_mut(place) {
                    *old = item;
                } else {
                    // Not twice as much as there is: it will not grow for long.
                    items.reserve_exact(1);
                    items.push(item);
                }
            }
        }
    }

    /// Changes every item.
    pub(super) fn update(&mut self, mut change: impl FnMut(&mut T)) {
        for place in 0..self.len() {
            if let Some(mut item) = self.get(place) {
                change(&mut item);
                self.set(place, item);
            }
        }
    }

    /// Keeps some of the items, in the short form if they fit.
    pub(super) fn keep(&mut self, is_kept: impl FnMut(&T) -> bool) {
        let old = std::mem::take(self);
        let kept = old.iter().filter(is_kept);
        kept.for_each(|item| self.set(self.len(), item));
    }

    /// Bytes that it asks the heap for.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Short { .. } => 0,
            Self::Long(items) => items.capacity() * size_of::<T>(),
        }
    }
}

impl<T: Pack, const N: usize> Default for PackedList<T, N> {
    fn default() -> Self {
        Self::Short {
            len: 0,
            items: [T::ZERO; N],
        }
    }
}

/// The sum of a slot: in three bytes up to 2^23.
impl Pack for i64 {
    type Short = [u8; 3];
    const ZERO: [u8; 3] = [0; 3];

    fn pack(self) -> Option<[u8; 3]> {
        let [low, middle, high, ..] = self.to_le_bytes();
        let short = [low, middle, high];
        (Self::unpack(short) == self).then_some(short)
    }

    fn unpack([low, middle, high]: [u8; 3]) -> Self {
        // The sign is in the highest bit, from which the shift fills the rest.
        Self::from(i32::from_le_bytes([0, low, middle, high]) >> 8)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    use super::*;

    /// Small and large numbers, and those next to the largest that has a short form.
    fn numbers() -> impl Strategy<Value = i64> {
        let edge = (1 << 23) - 3..(1 << 23) + 3_i64;
        let negative = edge.clone().prop_map(|number| -number);
        prop_oneof![-100..100_i64, edge, negative, any::<i64>()]
    }

    proptest! {
        /// Whatever their form, items are those of a plain list.
        #[test]
        fn items_are_those_of_a_plain_list(steps in vec((0..9_usize, numbers(), any::<bool>()), 0..60)) {
            let mut packed = PackedList::<i64, 5>::default();
            let mut plain = Vec::new();
            for (place, number, thins_out) in steps {
                let place = place.min(plain.len());
                packed.set(place, number);
                if place < plain.len() {
                    plain[place] = number;
                } else {
                    plain.push(number);
                }
                if thins_out {
                    packed.keep(|number| number % 2 == 0);
                    plain.retain(|number| number % 2 == 0);
                    let is_short = plain.len() <= 5 && plain.iter().all(|number| number.pack().is_some());
                    assert_eq!(packed.heap_bytes() == 0, is_short);
                }
                assert_eq!(packed.iter().collect::<Vec<_>>(), plain);
            }
        }
    }
}
