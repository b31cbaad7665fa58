//! What stands after the `?` of an admin request.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::fault::Fault;

/// The parameters of a query, taken out one by one; what is left nobody knows.
#[derive(Debug)]
pub(super) struct Query<'a> {
    path: &'static str,
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Which part of a list to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

// === impl Query ===

impl<'a> Query<'a> {
    /// Hyper bounds the head of a request, and so the query.
    pub(super) fn parse(path: &'static str, query: Option<&'a str>) -> Self {
        let bytes = query.unwrap_or_default().as_bytes();
        Self {
            path,
            parameters: form_urlencoded::parse(bytes).collect(),
        }
    }

    /// The parameter of this name; the last, if there are several.
    pub(super) fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let mut value = None;
        self.parameters.retain_mut(|(its_name, its_value)| {
            let is_it = *its_name == *name;
            if is_it {
                value = Some(std::mem::take(its_value));
            }
            !is_it
        });
        value
    }

    /// The parameter of this name as a number in `range`, which `expected` says in words.
    pub(super) fn take_number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<usize>,
        expected: &'static str,
    ) -> Result<Option<usize>, Fault> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(Fault::BadQuery { name, expected }),
        }
    }

    /// Which part of a list to show.
    pub(super) fn take_page(&mut self) -> Result<Page, Fault> {
        let offset = self.take_number("offset", 0..=usize::MAX, "a whole number")?;
        let limit = self.take_number("limit", 1..=1_000, "a whole number from 1 to 1000")?;
        Ok(Page {
            offset: offset.unwrap_or(0),
            limit: limit.unwrap_or(Page::USUAL),
        })
    }

    /// Refuses what is left: a parameter with a typing error would else be ignored in silence.
    pub(super) fn finish(self) -> Result<(), Fault> {
        match self.parameters.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Fault::UnknownQuery {
                name: name.into_owned(),
                path: self.path,
            }),
        }
    }
}

// === impl Page ===

impl Page {
    const USUAL: usize = 100;

    /// Where the next page begins, in a list of `total`.
    pub(super) fn next(self, total: usize) -> Option<usize> {
        let next = self.offset.saturating_add(self.limit);
        (next < total).then_some(next)
    }
}
