//! Names that decisions refer to by number, so that a decision has a fixed size.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A bounded table of names. When it is full, the oldest name is forgotten.
///
/// Its lock is taken once for each name and thread, and by readers; a thread keeps the numbers it knows.
#[derive(Debug)]
pub(super) struct NameTable<T: ?Sized> {
    names: Mutex<Names<T>>,
    /// Numbers below this one are forgotten.
    first: AtomicU32,
    most: usize,
}

#[derive(Debug)]
struct Names<T: ?Sized> {
    numbers: HashMap<Arc<T>, u32>,
    /// The names from number `first` on.
    list: VecDeque<Arc<T>>,
    first: u32,
}

/// The number that stands for no name.
pub(super) const NO_NAME: u32 = 0;

// === impl NameTable ===

impl<T: Eq + Hash + ?Sized> NameTable<T> {
    /// An empty table for at most `most` names.
    pub(super) fn new(most: usize) -> Self {
        let first = NO_NAME + 1;
        Self {
            names: Mutex::new(Names {
                numbers: HashMap::new(),
                list: VecDeque::new(),
                first,
            }),
            first: AtomicU32::new(first),
            most,
        }
    }

    /// Tells whether the table still has the name of `number`.
    pub(super) fn has(&self, number: u32) -> bool {
        number >= self.first.load(Ordering::Relaxed)
    }

    /// Returns the number of `name`, a new one if it has none.
    #[cold]
    pub(super) fn number(&self, name: Arc<T>) -> u32 {
        let mut names = self.lock();
        if let Some(number) = names.numbers.get(&name) {
            return *number;
        }
        let n_names = u32::try_from(names.list.len()).ok();
        let number = n_names.and_then(|n_names| names.first.checked_add(n_names));
        let Some(number) = number.filter(|_| self.most > 0) else {
            return NO_NAME;
        };
        if names.list.len() == self.most
            && let Some(oldest) = names.list.pop_front()
        {
            names.numbers.remove(&oldest);
            names.first += 1;
            self.first.store(names.first, Ordering::Relaxed);
        }
        names.list.push_back(Arc::clone(&name));
        names.numbers.insert(name, number);
        number
    }

    /// Returns the name of `number`; `None` if it is forgotten.
    pub(super) fn name(&self, number: u32) -> Option<Arc<T>> {
        let names = self.lock();
        let index = number.checked_sub(names.first)?;
        names.list.get(usize::try_from(index).ok()?).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Names<T>> {
        // A name is added whole or not at all.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_name_is_forgotten() {
        let table: NameTable<str> = NameTable::new(2);
        let one = table.number("one".into());
        let two = table.number("two".into());
        assert_eq!(table.number("one".into()), one, "a name has one number");
        let three = table.number("three".into());
        assert_eq!(table.name(one), None);
        assert!(!table.has(one) && table.has(two) && table.has(three));
        assert_eq!(table.name(two).as_deref(), Some("two"));
        assert_eq!(table.name(three).as_deref(), Some("three"));
        assert_eq!(table.name(three + 1), None);
        let again = table.number("one".into());
        assert!(again > three, "a forgotten number is not used again");
        assert_eq!(table.name(again).as_deref(), Some("one"));
    }

    #[test]
    fn no_name_has_the_number_of_none() {
        let table: NameTable<str> = NameTable::new(1);
        assert!(!table.has(NO_NAME));
        assert_eq!(table.name(NO_NAME), None);
        let empty: NameTable<str> = NameTable::new(0);
        assert_eq!(empty.number("one".into()), NO_NAME);
    }
}
