//! The values that a request has for sources.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use arrayvec::ArrayString;
use smallvec::SmallVec;

use super::Source;
use crate::api_key::ApiKey;
use crate::value_list::{check_lines, one_meaning};
use crate::{AmbiguousValue, ClaimPath, ListChoice, ListPlace, Request, cookie, path, uri};

/// The values of one request, one for each source of the recipes that made it.
#[derive(Clone, Debug, Default)]
pub struct Values<'a> {
    pub(super) list: SmallVec<[Option<ValueText<'a>>; INLINE_VALUES]>,
}

/// One value. An address is written into the value itself, which spares an allocation for the commonest source.
#[derive(Clone, Debug)]
pub(super) enum ValueText<'a> {
    Text(Cow<'a, str>),
    Address(AddressText),
    /// Several values of one source, at least two; each is charged.
    Each(Vec<Cow<'a, str>>),
}

/// Reads values of one request. The API key is looked up once for all sources that need it.
pub(super) struct ValueReader<'r, 'a> {
    request: &'r Request<'a>,
    api_key: OnceCell<Option<&'a ApiKey>>,
}

type AddressText = ArrayString<ADDRESS_BYTES>;

/// Sources that fit without an allocation; the default recipes have three.
const INLINE_VALUES: usize = 3;

/// The longest IPv6 address as text: eight groups of four digits.
const ADDRESS_BYTES: usize = 39;

// === impl Values ===

impl Values<'_> {
    /// The number of values of the source with this place.
    pub(super) fn count(&self, place: usize) -> usize {
        self.get(place).map_or(0, ValueText::n_values)
    }

    /// The value of the source with this place.
    pub(super) fn get(&self, place: usize) -> Option<&ValueText<'_>> {
        self.list.get(place)?.as_ref()
    }
}

// === impl ValueText ===

impl<'a> ValueText<'a> {
    /// The number of values.
    pub(super) fn n_values(&self) -> usize {
        match self {
            Self::Each(values) => values.len(),
            _ => 1,
        }
    }

    /// The value with this index, which wraps around.
    pub(super) fn nth(&self, index: usize) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Address(text) => text,
            Self::Each(values) => &values[index % values.len()],
        }
    }

    fn into_all(self) -> Vec<Cow<'a, str>> {
        match self {
            Self::Text(text) => vec![text],
            Self::Address(text) => vec![Cow::Owned(text.as_str().to_owned())],
            Self::Each(values) => values,
        }
    }
}

// === impl ValueReader ===

impl<'r, 'a> ValueReader<'r, 'a> {
    pub(super) const fn new(request: &'r Request<'a>) -> Self {
        Self {
            request,
            api_key: OnceCell::new(),
        }
    }

    /// The value that the request has for `source`. One that is empty counts as absent.
    pub(super) fn read(&self, source: &'a Source) -> Result<Option<ValueText<'a>>, AmbiguousValue> {
        let text = match source {
            Source::ClientAddress(grouping) => {
                let group = self.request.client.and_then(|client| grouping.of(client));
                return Ok(group.map(|group| ValueText::Address(address_text(group))));
            }
            Source::List(place, name, choice) => return self.read_list(*place, name, *choice),
            // Looked up and checked at once: this is the commonest source after the address.
            Source::Header(name) => {
                let value = self.request.headers.value(name);
                value.map(|value| one_meaning(name, value)).transpose()?
            }
            Source::Cookie(name) => cookie::find(self.request.headers, name)?,
            Source::Query(name) => match self.request.uri {
                Some(uri) => uri::query(uri, name)?,
                None => None,
            },
            _ => {
                check_lines(source, self.request)?;
                self.read_text(source)
            }
        };
        Ok(text.filter(|text| !text.is_empty()).map(ValueText::Text))
    }

    /// All values that the request has for `source`. A claim that is a list has several: each of its elements.
    pub(super) fn read_all(&self, source: &'a Source) -> Result<Vec<Cow<'a, str>>, AmbiguousValue> {
        let Some(path) = self.claim(source) else {
            return Ok(self
                .read(source)?
                .map_or_else(Vec::new, ValueText::into_all));
        };
        check_lines(source, self.request)?;
        let claims = self.request.claims.into_iter();
        let values = claims.flat_map(|claims| claims.get_all(path));
        Ok(values.filter(|value| !value.is_empty()).collect())
    }

    fn read_list(
        &self,
        place: ListPlace,
        name: &str,
        choice: ListChoice,
    ) -> Result<Option<ValueText<'a>>, AmbiguousValue> {
        let mut values = place.read(self.request, name, choice)?;
        Ok(match values.len() {
            0 | 1 => values.pop().map(ValueText::Text),
            _ => Some(ValueText::Each(values)),
        })
    }

    fn read_text(&self, source: &'a Source) -> Option<Cow<'a, str>> {
        let request = self.request;
        match source {
            Source::Method => request.method.map(Cow::Borrowed),
            Source::Path => request.uri.and_then(path::counted_path),
            Source::PathWithoutLastSlash => {
                let path = path::counted_path(request.uri?)?;
                Some(path::without_last_slash(path))
            }
            Source::PathSegment(number) => path::path_segment(request.uri?, *number),
            Source::Host => request.host.map(uri::host),
            // Read by `read`.
            Source::ClientAddress(_)
            | Source::Header(_)
            | Source::Cookie(_)
            | Source::Query(_)
            | Source::List(..) => None,
            Source::Constant(text) => Some(Cow::Borrowed(text)),
            Source::Route => request.route.map(Cow::Borrowed),
            Source::Certificate => request.certificate.map(Cow::Borrowed),
            Source::Claim(path) => request.claims?.get(path),
            Source::ApiKey => Some(Cow::Borrowed(&self.api_key()?.id)),
            Source::Plan | Source::Tenant => match self.of_api_key(source) {
                Some(value) => Some(Cow::Borrowed(value)),
                None => request.claims?.get(self.claim(source)?),
            },
            Source::Label(table) => {
                let label = request.identities.label(table, request.client?);
                label.map(Cow::Borrowed)
            }
        }
    }

    fn api_key(&self) -> Option<&'a ApiKey> {
        let request = self.request;
        *self
            .api_key
            .get_or_init(|| request.identities.api_key(request))
    }

    /// The plan or the tenant in the API key table.
    fn of_api_key(&self, source: &Source) -> Option<&'a str> {
        match source {
            Source::Plan => self.api_key()?.plan.as_deref(),
            Source::Tenant => self.api_key()?.tenant.as_deref(),
            _ => None,
        }
    }

    /// The claim that the value comes from, if it does not come from the API key table.
    fn claim(&self, source: &'a Source) -> Option<&'a ClaimPath> {
        let settings = || Some(self.request.identities.tokens()?.settings());
        match source {
            Source::Claim(path) => Some(path),
            Source::Plan | Source::Tenant if self.of_api_key(source).is_some() => None,
            Source::Plan => settings()?.plan_claim.as_ref(),
            Source::Tenant => settings()?.tenant_claim.as_ref(),
            _ => None,
        }
    }
}

fn address_text(address: IpAddr) -> AddressText {
    let mut text = AddressText::new();
    match address {
        IpAddr::V4(address) => write_ipv4(&mut text, address),
        IpAddr::V6(address) => {
            // An IPv6 address always fits, and nothing else can fail.
            let _ = write!(text, "{address}");
        }
    }
    text
}

/// Writes an IPv4 address by hand: the formatting of the standard library takes several times as many instructions
/// (`tests/instructions.rs`).
fn write_ipv4(text: &mut AddressText, address: Ipv4Addr) {
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        if octet >= 100 {
            text.push(char::from(b'0' + octet / 100));
        }
        if octet >= 10 {
            text.push(char::from(b'0' + octet / 10 % 10));
        }
        text.push(char::from(b'0' + octet % 10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_standard_library_does() {
        let check = |address: IpAddr| {
            assert_eq!(address_text(address).as_str(), address.to_string());
        };
        for octet in 0..=u8::MAX {
            check(IpAddr::from([octet, octet / 2, octet / 3, 255 - octet]));
        }
        for address in ["::", "::1", "2001:db8::", "::ffff:255.255.255.255"] {
            check(address.parse().expect("an address"));
        }
        check(IpAddr::from([0xffff_u16; 8]));
    }
}
