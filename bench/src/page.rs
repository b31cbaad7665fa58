//! The page of results, section by section. What was not measured stays as it was.

use std::fmt;

use crate::{day, gateway, redis, service, soak};

/// The section with the figures of `scripts/attack rules`, written by hand; it stays as it is here.
const RULES: &str = "# Rules\n";

/// The section that `tests/fleet` writes; it stays as it is here.
const FLEET: &str = "## Promises, measured from outside\n";

/// How each section begins, in the order of the page.
const HEADINGS: [&str; 8] = [
    "# Benchmark results\n",
    service::HEADING,
    redis::HEADING,
    gateway::HEADING,
    RULES,
    day::HEADING,
    soak::HEADING,
    FLEET,
];

/// The page, as far as it is known: each section at the place of its heading.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page([Option<String>; HEADINGS.len()]);

// === impl Page ===

impl Page {
    /// Adds a section, which begins with its heading.
    pub fn add(&mut self, section: String) {
        let place = HEADINGS
            .iter()
            .position(|heading| section.starts_with(heading));
        if let Some(place) = place {
            self.0[place] = Some(section);
        }
    }

    /// This page, and for what it does not have the page before it.
    #[must_use]
    pub fn over(mut self, before: &str) -> Self {
        let before = Self::parse(before);
        for (section, before) in self.0.iter_mut().zip(before.0) {
            *section = section.take().or(before);
        }
        self
    }

    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let starts = HEADINGS.iter().filter_map(|heading| text.find(heading));
        let starts: Vec<usize> = starts.collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        for (start, end) in starts.iter().zip(ends) {
            page.add(format!("{}\n", text[*start..end].trim_end()));
        }
        page
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.0.iter().flatten().map(String::as_str);
        f.write_str(&sections.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_stays() {
        let [first, second, third, ..] = HEADINGS;
        let old = format!("{first}\nold\n\n{second}\nold\n\n{third}\nold\n");
        let mut new = Page::default();
        new.add(format!("{second}\nnew\n"));
        let page = new.over(&old).to_string();
        assert_eq!(
            page,
            format!("{first}\nold\n\n{second}\nnew\n\n{third}\nold\n")
        );
        assert_eq!(Page::default().over(&page).to_string(), page);
    }
}
