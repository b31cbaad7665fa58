//! Headers in routes: their names, and changes to them.

use http::{HeaderName, HeaderValue};
use tidegate_gateway::HeaderEdits;
use tidegate_rules::document::{Code, Finding};

use crate::config::reader::{Item, Section};
use crate::config::value::Value;

/// Headers that frame a message or belong to one connection, which only the gateway sets.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads what a route changes in headers.
pub(super) fn edits(mut section: Section<'_, '_>) -> HeaderEdits {
    let remove: Vec<HeaderName> = section.list("remove", "Headers that are removed", Vec::new());
    let mut lines = |name, about| {
        let items = section.named_blocks(name, about, Some("value"), |section| {
            let value: Option<HeaderValue> = section.optional("value", "Its value");
            if value.is_none() && !section.is_written("value") {
                section.missing("value", "write its value, or \"\" for an empty one");
            }
            value
        });
        let mut lines = Vec::with_capacity(items.len());
        for item in items {
            let name = header_name(&mut section, &item);
            lines.extend(name.zip(item.value));
        }
        lines
    };
    let set = lines("set", "Headers that replace every line of the same name");
    let add = lines("add", "Headers that stand beside lines of the same name");
    let removed = remove.iter().map(|name| ("remove", name));
    let set_or_added = [("set", &set), ("add", &add)]
        .into_iter()
        .flat_map(|(field, lines)| lines.iter().map(move |(name, _)| (field, name)));
    for (field, name) in removed.chain(set_or_added) {
        if FRAMING.contains(&name.as_str()) {
            let message = format!("`{name}` belongs to the connection and cannot be changed");
            section.fault(field, Code::BadValue, message, "leave it out");
        }
    }
    HeaderEdits { remove, set, add }
}

/// The name of a header that stands as a key.
pub(super) fn header_name<T>(section: &mut Section<'_, '_>, item: &Item<T>) -> Option<HeaderName> {
    match HeaderName::parse(&item.name) {
        Ok(name) => Some(name),
        Err(mismatch) => {
            let message = format!("`{}` is not {}", item.name, mismatch.expected);
            let finding = Finding::error(Code::BadValue, item.span, message);
            section.report(finding.hint(mismatch.hint));
            None
        }
    }
}
