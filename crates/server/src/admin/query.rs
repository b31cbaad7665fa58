//! What stands after the `?` of an admin request.

use std::borrow::Cow;
use std::str::FromStr;

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

    /// The parameter of this name, read as something.
    pub(super) fn take_as<T: FromStr>(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, Fault> {
        let parse = |text: Cow<'_, str>| {
            let parsed = text.parse();
            parsed.map_err(|_| Fault::BadQuery { name, expected })
        };
        self.take(name).map(parse).transpose()
    }

    /// Which part of a list to show.
    pub(super) fn take_page(&mut self) -> Result<Page, Fault> {
        let offset = self.take_as("offset", "a whole number")?;
        let limit = self.take_as("limit", "a whole number from 1 to 1000")?;
        if limit.is_some_and(|limit| !(1..=Page::MOST).contains(&limit)) {
            let expected = "a whole number from 1 to 1000";
            let name = "limit";
            return Err(Fault::BadQuery { name, expected });
        }
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
    const MOST: usize = 1_000;

    /// Where the next page begins, in a list of `total`.
    pub(super) fn next(self, total: usize) -> Option<usize> {
        let next = self.offset.saturating_add(self.limit);
        (next < total).then_some(next)
    }
}
