//! The page of results: decisions in one table, the service in another. What was not measured stays as
//! it was.

use std::fmt;

use crate::service::HEADING;

/// The page, as far as it is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The section on decisions.
    pub decisions: Option<String>,
    /// The section on the service.
    pub service: Option<String>,
}

// === impl Page ===

impl Page {
    /// This page, and for what it does not have the page before it.
    #[must_use]
    pub fn over(self, before: &str) -> Self {
        let before = Self::parse(before);
        Self {
            decisions: self.decisions.or(before.decisions),
            service: self.service.or(before.service),
        }
    }

    fn parse(text: &str) -> Self {
        let service = text.find(HEADING).unwrap_or(text.len());
        let (decisions, service) = text.split_at(service);
        let section = |text: &str| {
            let text = text.trim_end();
            (!text.is_empty()).then(|| format!("{text}\n"))
        };
        Self {
            decisions: section(decisions),
            service: section(service),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections: Vec<&str> = [&self.decisions, &self.service]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        f.write_str(&sections.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_stays() {
        let old = format!("# Benchmark results\n\nold\n\n{HEADING}\nold\n");
        let new = Page {
            service: Some(format!("{HEADING}\nnew\n")),
            ..Page::default()
        };
        let page = new.over(&old).to_string();
        assert_eq!(
            page,
            format!("# Benchmark results\n\nold\n\n{HEADING}\nnew\n")
        );
        assert_eq!(Page::default().over(&page).to_string(), page);
    }
}
