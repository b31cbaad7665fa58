//! The JSON body of a check, read into requests to the limiter.

use std::ops::Range;

use tidegate_limiter::{Descriptor, Entry, Hits};

use super::fault::{Faults, Place, excerpt};
use super::json::{Field, Json};

/// The checks that a body requests.
#[derive(Debug)]
pub(crate) enum CheckRequest<'a> {
    /// One check.
    One(Check<'a>),
    /// Several, each judged by itself, in order.
    Batch(Vec<Check<'a>>),
}

/// One check, in the limiter's words.
#[derive(Debug)]
pub(crate) struct Check<'a> {
    pub(crate) domain: &'a str,
    entries: Vec<Entry<'a>>,
    parts: Vec<Part>,
}

/// One descriptor, whose entries are a range of the check's.
#[derive(Debug)]
struct Part {
    entries: Range<usize>,
    hits: Hits,
}

/// Reads one body, and writes down whatever is wrong with it.
#[derive(Default)]
struct Reader {
    faults: Faults,
}

/// The fields of an object that are known there.
struct Fields<'j, 'a>(&'j [Field<'a>]);

/// The most checks of one batch: a page of a list, a fan-out. A body has room for little more.
const MAX_CHECKS: usize = 256;

/// The most descriptors of one check, and entries of one descriptor; as over gRPC.
const MAX_DESCRIPTORS: usize = 32;
const MAX_ENTRIES: usize = 32;

const ENTRIES_HINT: &str = r#"write {"key": "value"}, or [["key", "value"]]"#;

// === impl CheckRequest ===

impl<'a> CheckRequest<'a> {
    /// Reads the body of a request.
    pub(crate) fn read(body: &'a Json<'a>) -> Result<Self, Faults> {
        let mut reader = Reader::default();
        match reader.request(body, &Place::Body) {
            Some(request) if reader.faults.is_empty() => Ok(request),
            _ => Err(reader.faults),
        }
    }
}

// === impl Check ===

impl Check<'_> {
    /// The descriptors for the limiter.
    pub(crate) fn descriptors(&self) -> Vec<Descriptor<'_>> {
        let descriptor = |part: &Part| Descriptor {
            hits: part.hits,
            ..Descriptor::new(&self.entries[part.entries.clone()])
        };
        self.parts.iter().map(descriptor).collect()
    }
}

// === impl Reader ===

impl Reader {
    fn request<'a>(&mut self, body: &'a Json<'a>, place: &Place<'_>) -> Option<CheckRequest<'a>> {
        let checks = match body {
            Json::Object(fields) => Fields(fields).get("checks"),
            _ => None,
        };
        let Some(checks) = checks else {
            return self.check(body, place).map(CheckRequest::One);
        };
        self.object(body, &["checks"], place);
        let place = place.field("checks");
        let checks = self.list(checks, MAX_CHECKS, &place)?.iter().enumerate();
        let checks = checks.filter_map(|(index, check)| self.check(check, &place.element(index)));
        Some(CheckRequest::Batch(checks.collect()))
    }

    fn check<'a>(&mut self, json: &'a Json<'a>, place: &Place<'_>) -> Option<Check<'a>> {
        let known = ["domain", "descriptors", "cost", "refund"];
        let fields = self.object(json, &known, place)?;
        let domain = self.domain(&fields, place);
        let hits = self.hits(&fields, place).unwrap_or(Hits::Take(1));
        let mut check = Check {
            domain: domain.unwrap_or_default(),
            entries: Vec::new(),
            parts: Vec::new(),
        };
        let Some(descriptors) = fields.get("descriptors") else {
            self.faults.add(place, "`descriptors` is missing");
            return None;
        };
        let place = place.field("descriptors");
        let descriptors = self.list(descriptors, MAX_DESCRIPTORS, &place)?;
        for (index, descriptor) in descriptors.iter().enumerate() {
            self.descriptor(descriptor, hits, &place.element(index), &mut check);
        }
        Some(check)
    }

    fn domain<'a>(&mut self, fields: &Fields<'a, 'a>, place: &Place<'_>) -> Option<&'a str> {
        match fields.get("domain") {
            Some(Json::Text(domain)) if !domain.is_empty() => return Some(domain),
            Some(Json::Text(_)) => self.faults.add(&place.field("domain"), "must not be empty"),
            Some(other) => self.expected("a string", other, &place.field("domain")),
            None => self.faults.add(place, "`domain` is missing"),
        }
        None
    }

    /// What `cost` or `refund` say, if they are there.
    fn hits(&mut self, fields: &Fields<'_, '_>, place: &Place<'_>) -> Option<Hits> {
        let mut count = |name| {
            let json = fields.get(name)?;
            let Json::Count(count) = json else {
                self.expected("a whole number from 0 on", json, &place.field(name));
                return None;
            };
            Some(*count)
        };
        match (count("cost"), count("refund")) {
            (Some(_), Some(_)) => {
                let detail = "`cost` and `refund` exclude each other";
                self.faults.add(&place.field("refund"), detail);
                None
            }
            (Some(cost), None) => Some(Hits::Take(cost)),
            (None, Some(refund)) => Some(Hits::Refund(refund)),
            (None, None) => None,
        }
    }

    /// A descriptor is its entries; or an object with `entries` that are no string, where there is more
    /// to say.
    fn descriptor<'a>(
        &mut self,
        json: &'a Json<'a>,
        of_check: Hits,
        place: &Place<'_>,
        check: &mut Check<'a>,
    ) {
        let start = check.entries.len();
        let is_text = |json: &Json<'_>| matches!(json, Json::Text(_));
        let entries = match json {
            Json::Object(fields) => Fields(fields).get("entries").filter(|it| !is_text(it)),
            _ => None,
        };
        let hits = if let Some(entries) = entries {
            let fields = self.object(json, &["entries", "cost", "refund"], place);
            self.entries(entries, &place.field("entries"), check);
            fields.and_then(|fields| self.hits(&fields, place))
        } else {
            self.entries(json, place, check);
            None
        };
        check.parts.push(Part {
            entries: start..check.entries.len(),
            hits: hits.unwrap_or(of_check),
        });
    }

    fn entries<'a>(&mut self, json: &'a Json<'a>, place: &Place<'_>, check: &mut Check<'a>) {
        let n_entries = match json {
            Json::Object(fields) => fields.len(),
            Json::List(pairs) => pairs.len(),
            other => {
                let expected = format!("the entries of a descriptor; {ENTRIES_HINT}");
                return self.expected(&expected, other, place);
            }
        };
        if n_entries == 0 {
            let detail = format!("has no entry, so no rule matches it; {ENTRIES_HINT}");
            self.faults.add(place, detail);
        }
        if n_entries > MAX_ENTRIES {
            let detail = format!("has {n_entries} entries, more than {MAX_ENTRIES}");
            return self.faults.add(place, detail);
        }
        match json {
            Json::Object(fields) => self.named_entries(fields, place, check),
            Json::List(pairs) => self.paired_entries(pairs, place, check),
            _ => {}
        }
    }

    /// `{"user_id": "42", "plan": "free"}`, in the order that it is written.
    fn named_entries<'a>(
        &mut self,
        fields: &'a [Field<'a>],
        place: &Place<'_>,
        check: &mut Check<'a>,
    ) {
        for (index, Field { name, value }) in fields.iter().enumerate() {
            let place = place.field(name);
            if fields[..index].iter().any(|other| other.name == *name) {
                let detail = "stands twice; write the entries as a list of pairs if that is meant";
                self.faults.add(&place, detail);
            }
            match value {
                Json::Text(value) => check.entries.push(Entry { key: name, value }),
                other => self.expected("a string", other, &place),
            }
        }
    }

    /// `[["user_id", "42"], ["user_id", "43"]]`.
    fn paired_entries<'a>(
        &mut self,
        pairs: &'a [Json<'a>],
        place: &Place<'_>,
        check: &mut Check<'a>,
    ) {
        for (index, pair) in pairs.iter().enumerate() {
            let place = place.element(index);
            let parts = match pair {
                Json::List(parts) => parts.as_slice(),
                _ => &[],
            };
            match parts {
                [Json::Text(key), Json::Text(value)] => check.entries.push(Entry { key, value }),
                _ => self
                    .faults
                    .add(&place, r#"must be a pair of strings, ["key", "value"]"#),
            }
        }
    }

    fn object<'a>(
        &mut self,
        json: &'a Json<'a>,
        known: &[&str],
        place: &Place<'_>,
    ) -> Option<Fields<'a, 'a>> {
        match json {
            Json::Object(fields) => Some(self.fields(fields, known, place)),
            other => {
                self.expected("an object", other, place);
                None
            }
        }
    }

    fn fields<'a>(
        &mut self,
        fields: &'a [Field<'a>],
        known: &[&str],
        place: &Place<'_>,
    ) -> Fields<'a, 'a> {
        let names = fields.iter().map(|field| field.name.as_ref());
        for unknown in names.clone().filter(|name| !known.contains(name)) {
            let detail = format!("unknown field {}; there are `{}`", excerpt(unknown), {
                known.join("`, `")
            });
            self.faults.add(&place.field(unknown), detail);
        }
        // An object may have as many fields as a body has room for, but only a few are known.
        for name in known {
            if names.clone().filter(|other| other == name).count() > 1 {
                self.faults.add(&place.field(name), "stands twice");
            }
        }
        Fields(fields)
    }

    /// A list that is neither empty nor too long.
    fn list<'a>(
        &mut self,
        json: &'a Json<'a>,
        most: usize,
        place: &Place<'_>,
    ) -> Option<&'a [Json<'a>]> {
        match json {
            Json::List(list) if list.is_empty() => self.faults.add(place, "must not be empty"),
            Json::List(list) if list.len() > most => {
                let detail = format!("has {} elements, more than {most}", list.len());
                self.faults.add(place, detail);
            }
            Json::List(list) => return Some(list),
            other => self.expected("a list", other, place),
        }
        None
    }

    fn expected(&mut self, expected: &str, found: &Json<'_>, place: &Place<'_>) {
        let detail = format!("must be {expected}, not {}", found.shape());
        self.faults.add(place, detail);
    }
}

// === impl Fields ===

impl<'j, 'a> Fields<'j, 'a> {
    /// The value of a field; `null` is as good as absent.
    fn get(&self, name: &str) -> Option<&'j Json<'a>> {
        let field = self.0.iter().find(|field| field.name == name)?;
        match &field.value {
            Json::Null => None,
            value => Some(value),
        }
    }
}
