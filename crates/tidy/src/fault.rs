//! What a rule reports, and what it is told to overlook.

use std::fmt;

/// One place where the house rules do not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, from the root of the repository, or the package.
    pub place: String,
    /// The line, counted from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// A place that may break a rule, and why.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The file, from the root of the repository; with a final `/`, all files below.
    pub place: &'static str,
    /// Why the rule does not apply there.
    pub reason: &'static str,
}

/// Drops the faults that an exception covers, and adds one for each exception that covers none, so
/// that the list never outlives its reasons.
pub fn excuse(faults: &[Fault], exceptions: &[Exception]) -> Vec<Fault> {
    let standing = faults
        .iter()
        .filter(|fault| !exceptions.iter().any(|each| each.covers(fault)))
        .cloned();
    let idle = exceptions
        .iter()
        .filter(|exception| !faults.iter().any(|fault| exception.covers(fault)))
        .map(|exception| {
            Fault::new(
                exception.place,
                "is excepted from a rule that it does not break",
            )
        });
    standing.chain(idle).collect()
}

// === impl Fault ===

impl Fault {
    /// A fault of a whole file or package.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line: None,
            message: message.into(),
        }
    }

    /// A fault on one line.
    pub fn at(place: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

// === impl Exception ===

impl Exception {
    fn covers(&self, fault: &Fault) -> bool {
        fault.place == self.place
            || (self.place.ends_with('/') && fault.place.starts_with(self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCEPTIONS: &[Exception] = &[Exception {
        place: "bench/",
        reason: "it measures",
    }];

    #[test]
    fn an_exception_covers_its_folder_and_nothing_else() {
        let faults = vec![
            Fault::new("bench/src/main.rs", "bad"),
            Fault::new("benches.rs", "bad"),
        ];
        assert_eq!(
            excuse(&faults, EXCEPTIONS),
            vec![Fault::new("benches.rs", "bad")]
        );
    }

    #[test]
    fn an_exception_that_covers_nothing_is_a_fault() {
        let left = excuse(&[], EXCEPTIONS);
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].place, "bench/");
    }
}
