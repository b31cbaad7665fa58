//! A map from text that is written once and looked up for every request.

use hashbrown::HashMap;

/// Up to so many entries are compared one by one: most differ in length already, and a hash costs
/// more than the rest.
const MAX_FEW: usize = 8;

/// A map from text. The hash of a larger one is keyed at random, but not against an attacker:
/// callers only look up, and what is in it the operator wrote.
#[derive(Clone, Debug)]
pub(crate) enum Table<T> {
    Few(Vec<(Box<str>, T)>),
    Many(HashMap<Box<str>, T>),
}

// === impl Table ===

impl<T> Table<T> {
    #[inline]
    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        match self {
            Self::Few(entries) => {
                let found = entries.iter().find(|(known, _)| **known == *key);
                found.map(|(_, value)| value)
            }
            Self::Many(entries) => entries.get(key),
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries), None),
            Self::Many(entries) => (None, Some(entries)),
        };
        let few = few.into_iter().flatten().map(|(_, value)| value);
        few.chain(many.into_iter().flat_map(HashMap::values))
    }

    pub(crate) fn insert(&mut self, key: &str, value: T) {
        if let Some(known) = self.get_mut(key) {
            *known = value;
            return;
        }
        match self {
            Self::Few(entries) if entries.len() < MAX_FEW => entries.push((key.into(), value)),
            Self::Few(entries) => {
                let mut many: HashMap<_, _> = entries.drain(..).collect();
                many.insert(key.into(), value);
                *self = Self::Many(many);
            }
            Self::Many(entries) => {
                entries.insert(key.into(), value);
            }
        }
    }

    /// The entry of `key`, made if it is not there.
    pub(crate) fn entry(&mut self, key: &str) -> &mut T
    where
        T: Default,
    {
        if self.get(key).is_none() {
            self.insert(key, T::default());
        }
        self.get_mut(key)
            .expect("it was put in if it was not there")
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(entries) => entries.len(),
            Self::Many(entries) => entries.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries), None),
            Self::Many(entries) => (None, Some(entries)),
        };
        let few = few
            .into_iter()
            .flatten()
            .map(|(key, value)| (&**key, value));
        let many = many
            .into_iter()
            .flatten()
            .map(|(key, value)| (&**key, value));
        few.chain(many)
    }

    /// The values, in no particular order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries), None),
            Self::Many(entries) => (None, Some(entries)),
        };
        let few = few.into_iter().flatten().map(|(_, value)| value);
        few.chain(many.into_iter().flat_map(HashMap::values_mut))
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        match self {
            Self::Few(entries) => {
                let found = entries.iter_mut().find(|(known, _)| **known == *key);
                found.map(|(_, value)| value)
            }
            Self::Many(entries) => entries.get_mut(key),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_few_and_many() {
        let mut table = Table::default();
        for number in 0..100 {
            assert_eq!(table.len(), number);
            assert_eq!(table.get(&number.to_string()), None);
            table.insert(&number.to_string(), number);
            table.insert("0", 1000);
            *table.entry(&number.to_string()) += 1;
            for earlier in 1..number {
                assert_eq!(table.get(&earlier.to_string()), Some(&(earlier + 1)));
            }
            assert_eq!(table.iter().count(), table.len());
        }
        assert_eq!(table.get(""), None);
    }
}
