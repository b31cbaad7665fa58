//! A set of HTTP statuses: `402`, `4xx`, `500-599`.

use std::fmt;

/// A set of HTTP statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet {
    /// A bit for each status, from 100 on.
    bits: [u64; 8],
}

/// The statuses that there are.
const FIRST: u16 = 100;
const LAST: u16 = 599;

// === impl StatusSet ===

impl StatusSet {
    /// Whether the status is in the set.
    pub const fn contains(&self, status: u16) -> bool {
        if status < FIRST || status > LAST {
            return false;
        }
        let place = status - FIRST;
        self.bits[place as usize / 64] >> (place % 64) & 1 == 1
    }

    /// Adds the statuses that `text` names: one, a class such as `4xx`, or a range such as `500-599`.
    /// Returns false, and adds nothing, if it names none.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let Some((first, last)) = range(text) else {
            return false;
        };
        for status in first..=last {
            let place = status - FIRST;
            self.bits[usize::from(place / 64)] |= 1 << (place % 64);
        }
        true
    }
}

/// As ranges, such as `402, 500-599`.
impl fmt::Display for StatusSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = FIRST;
        let mut comma = "";
        while let Some(first) = (next..=LAST).find(|status| self.contains(*status)) {
            let last = (first..=LAST).take_while(|status| self.contains(*status));
            let last = last.last().unwrap_or(first);
            write!(formatter, "{comma}{first}")?;
            if last > first {
                write!(formatter, "-{last}")?;
            }
            comma = ", ";
            next = last + 1;
        }
        Ok(())
    }
}

fn range(text: &str) -> Option<(u16, u16)> {
    let status = |text: &str| {
        let is_status = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status: u16 = text.parse().ok().filter(|_| is_status)?;
        (FIRST..=LAST).contains(&status).then_some(status)
    };
    let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
    let (first, last) = if let Some(class) = class {
        (format!("{class}00"), format!("{class}99"))
    } else {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        (first.to_owned(), last.to_owned())
    };
    let (first, last) = (status(&first)?, status(&last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> StatusSet {
        let mut set = StatusSet::default();
        for text in texts {
            assert!(set.add(text), "{text}");
        }
        set
    }

    #[test]
    fn a_status_a_class_and_a_range_are_in_it() {
        let set = set(&["402", "4xx", "500-503", "599"]);
        for (status, is_in) in [
            (0, false),
            (99, false),
            (399, false),
            (400, true),
            (402, true),
            (499, true),
            (500, true),
            (503, true),
            (504, false),
            (599, true),
            (600, false),
            (u16::MAX, false),
        ] {
            assert_eq!(set.contains(status), is_in, "{status}");
        }
        assert_eq!(set.to_string(), "400-503, 599");
    }

    #[test]
    fn every_status_can_be_in_it() {
        let set = set(&["100-599"]);
        assert!((FIRST..=LAST).all(|status| set.contains(status)));
        assert_eq!(StatusSet::default().to_string(), "");
    }

    #[test]
    fn what_is_no_status_is_refused() {
        for bad in [
            "",
            "-",
            "99",
            "600",
            "4",
            "6xx",
            "xx",
            "4x",
            "0xx",
            "503-500",
            "400-",
            "-499",
            "400 - 499",
            "4xx-5xx",
            "+402",
            "４02",
            "1e2",
            "402,403",
            "12345678901234567890xx",
        ] {
            let mut set = StatusSet::default();
            assert!(!set.add(bad), "{bad:?}");
            assert_eq!(set, StatusSet::default());
        }
    }
}
