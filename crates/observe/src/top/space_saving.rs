//! The most frequent keys of a stream in bounded memory.

/// The Space-Saving summary (Metwally, Agrawal and El Abbadi, 2005) of a stream of weighted keys.
///
/// A key that comes when all places are taken replaces the one with the least count and inherits that
/// count, which is noted as its error. So a count is never less than the truth and at most its error
/// above it, and no error is above the whole weight divided by the number of places. With some
/// hundreds of places a look through all of them is as fast as any structure.
#[derive(Debug)]
pub(crate) struct SpaceSaving<T> {
    hashes: Vec<u64>,
    counts: Vec<u64>,
    kept: Vec<Kept<T>>,
    floor: u64,
}

/// What is kept of a key beside its count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept<T> {
    /// By how much its count may be too great.
    pub(crate) error: u64,
    /// What the key is.
    pub(crate) key: T,
}

/// Whether there is room for one more key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    More,
    Full,
}

/// Where a key came to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where it was.
    Known,
    /// In a place that was not there before.
    New,
    /// In the place of another.
    Taken,
}

// === impl SpaceSaving ===

impl<T: Default> SpaceSaving<T> {
    /// Counts `weight` for the key of this hash. If it was not there, `name` is to write what it is
    /// over what stood in its place, so that nothing need be allocated.
    pub(crate) fn offer(
        &mut self,
        hash: u64,
        weight: u64,
        room: Room,
        name: impl FnOnce(&mut T),
    ) -> Place {
        if let Some(at) = self.hashes.iter().position(|it| *it == hash) {
            self.counts[at] = self.counts[at].saturating_add(weight);
            return Place::Known;
        }
        let least = self.counts.iter().enumerate().min_by_key(|(_, it)| **it);
        match (room, least) {
            (Room::Full, Some((at, &least))) => {
                self.hashes[at] = hash;
                self.counts[at] = least.saturating_add(weight);
                self.floor = least;
                self.kept[at].error = least;
                name(&mut self.kept[at].key);
                Place::Taken
            }
            (Room::More, _) | (_, None) => {
                let mut key = T::default();
                name(&mut key);
                self.hashes.push(hash);
                // A key may be among those that were replaced before there was more room.
                self.counts.push(self.floor.saturating_add(weight));
                self.kept.push(Kept {
                    error: self.floor,
                    key,
                });
                Place::New
            }
        }
    }

    /// How many keys it holds.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// What a key that is not here may have been counted at most.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// The keys: hash, count, and what is kept beside.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, &Kept<T>)> {
        let counted = self.hashes.iter().zip(&self.counts).zip(&self.kept);
        counted.map(|((hash, count), kept)| (*hash, *count, kept))
    }
}

impl<T> Default for SpaceSaving<T> {
    fn default() -> Self {
        Self {
            hashes: Vec::new(),
            counts: Vec::new(),
            kept: Vec::new(),
            floor: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every count is at least the truth, at most its error above it, no error is above the weight
        /// by the number of places, and whoever has more than that is there.
        #[test]
        fn the_bounds_hold(
            n_places in 1_usize..12,
            stream in prop::collection::vec((0_u64..40, 1_u64..20), 0..400),
        ) {
            let mut summary = SpaceSaving::default();
            let mut truth: HashMap<u64, u64> = HashMap::new();
            for (key, weight) in &stream {
                *truth.entry(*key).or_default() += weight;
                let room = if summary.len() < n_places { Room::More } else { Room::Full };
                summary.offer(*key, *weight, room, |kept| *kept = *key);
            }
            let whole: u64 = truth.values().sum();
            let bound = whole / u64::try_from(n_places).unwrap();
            let mut found = HashMap::new();
            for (hash, count, kept) in summary.iter() {
                prop_assert_eq!(hash, kept.key);
                let true_count = truth[&hash];
                prop_assert!(count - kept.error <= true_count && true_count <= count);
                prop_assert!(kept.error <= bound);
                found.insert(hash, count);
            }
            for (key, count) in truth {
                prop_assert!(found.contains_key(&key) || count <= summary.floor());
                prop_assert!(found.contains_key(&key) || count <= bound);
            }
        }
    }
}
