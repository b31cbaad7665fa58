//! The claims of a verified token.

use std::borrow::Cow;
use std::fmt;
use std::slice;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The claims of a token whose signature, issuer, audience and times are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    values: Value,
    expires_at_s: u64,
}

/// The place of a claim: a name such as `sub`, or a JSON pointer (RFC 6901) such as `/realm_access/roles/0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimPath {
    /// A claim at the top level.
    Name(String),
    /// A JSON pointer, with its leading slash.
    Pointer(String),
}

/// A text that is not the place of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimPathFault {
    /// It is empty.
    #[error(
        "the name of a claim is missing; write a name such as `sub`, or a JSON pointer such as `/user/plan`"
    )]
    Empty,
    /// It is too long.
    #[error("the name of a claim has at most {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// It has a tilde that is not an escape.
    #[error("`{pointer}` is not a JSON pointer; write `~0` for `~` and `~1` for `/` in a name")]
    BadEscape {
        /// The text.
        pointer: String,
    },
}

/// The longest place of a claim. Names that are URLs need about 60 bytes.
const MAX_PATH_BYTES: usize = 256;

/// The memory of one JSON value beside its texts: a value and its share of the map or list that holds it.
const VALUE_BYTES: usize = 96;

// === impl Claims ===

impl Claims {
    pub(super) const fn new(values: Map<String, Value>, expires_at_s: u64) -> Self {
        Self {
            values: Value::Object(values),
            expires_at_s,
        }
    }

    /// The value of a claim as text: a string as it is, a number or a boolean as JSON writes it. Of a list the first
    /// element counts; an object, an empty list and null have no value.
    pub fn get(&self, path: &ClaimPath) -> Option<Cow<'_, str>> {
        text(self.elements(path).first()?)
    }

    /// The same for all elements of a list.
    pub fn get_all(&self, path: &ClaimPath) -> impl Iterator<Item = Cow<'_, str>> {
        self.elements(path).iter().filter_map(text)
    }

    /// The elements of a claim that is a list, else the claim itself.
    fn elements(&self, path: &ClaimPath) -> &[Value] {
        let value = match path {
            ClaimPath::Name(name) => self.values.get(name),
            ClaimPath::Pointer(pointer) => self.values.pointer(pointer),
        };
        match value {
            Some(Value::Array(elements)) => elements,
            Some(value) => slice::from_ref(value),
            None => &[],
        }
    }

    /// The time of the claim `exp`, in seconds since 1970.
    pub const fn expires_at_s(&self) -> u64 {
        self.expires_at_s
    }

    /// An upper estimate of the memory that the claims take.
    pub(super) fn bytes(&self) -> usize {
        bytes(&self.values)
    }
}

// === impl ClaimPath ===

impl FromStr for ClaimPath {
    type Err = ClaimPathFault;

    fn from_str(text: &str) -> Result<Self, ClaimPathFault> {
        if text.is_empty() {
            return Err(ClaimPathFault::Empty);
        }
        if text.len() > MAX_PATH_BYTES {
            return Err(ClaimPathFault::TooLong);
        }
        if !text.starts_with('/') {
            return Ok(Self::Name(text.to_owned()));
        }
        let is_escape = |rest: &str| rest.starts_with(['0', '1']);
        if text.split('~').skip(1).all(is_escape) {
            return Ok(Self::Pointer(text.to_owned()));
        }
        Err(ClaimPathFault::BadEscape {
            pointer: text.to_owned(),
        })
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Name(text) | Self::Pointer(text)) = self;
        f.write_str(text)
    }
}

fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(true) => Some(Cow::Borrowed("true")),
        Value::Bool(false) => Some(Cow::Borrowed("false")),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn bytes(value: &Value) -> usize {
    // The parser refuses JSON that nests deeper than 128 levels.
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + inside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims() -> Claims {
        let values = json!({
            "sub": "user-7",
            "level": 3,
            "rate": 1.5,
            "admin": true,
            "roles": ["editor", "author"],
            "none": null,
            "empty": [],
            "nested": [["x"]],
            "https://shop.example/plan": "premium",
            "realm": { "a/b": { "~c": "deep" }, "roles": ["first", "second"] },
        });
        let Value::Object(values) = values else {
            unreachable!("the claims are an object")
        };
        Claims::new(values, 0)
    }

    #[test]
    fn claims_are_text() {
        let check = |path: &str, expected: Option<&str>| {
            let path: ClaimPath = path.parse().expect(path);
            assert_eq!(claims().get(&path).as_deref(), expected, "{path}");
        };
        check("sub", Some("user-7"));
        check("level", Some("3"));
        check("rate", Some("1.5"));
        check("admin", Some("true"));
        check("roles", Some("editor"));
        check("none", None);
        check("empty", None);
        check("nested", None);
        check("realm", None);
        check("missing", None);
        check("https://shop.example/plan", Some("premium"));
        check("/sub", Some("user-7"));
        check("/roles/1", Some("author"));
        check("/roles/2", None);
        check("/realm/roles", Some("first"));
        check("/realm/a~1b/~0c", Some("deep"));
        check("/", None);
    }

    #[test]
    fn a_list_has_all_its_elements() {
        let check = |path: &str, expected: &[&str]| {
            let (path, claims) = (path.parse().expect(path), claims());
            assert!(claims.get_all(&path).eq(expected.iter().copied()), "{path}");
        };
        check("roles", &["editor", "author"]);
        check("/realm/roles", &["first", "second"]);
        check("sub", &["user-7"]);
        for path in ["none", "empty", "nested", "realm", "missing"] {
            check(path, &[]);
        }
    }

    #[test]
    fn a_path_prints_as_it_reads() {
        for text in ["sub", "https://shop.example/plan", "/a~1b/0", "a~b"] {
            let path: ClaimPath = text.parse().expect(text);
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn faulty_paths_are_named() {
        let check = |text: &str, expected: ClaimPathFault| {
            assert_eq!(text.parse::<ClaimPath>(), Err(expected), "{text}");
        };
        check("", ClaimPathFault::Empty);
        check(&"x".repeat(257), ClaimPathFault::TooLong);
        for pointer in ["/~", "/a~2", "/~~0"] {
            let pointer = pointer.to_owned();
            check(&pointer.clone(), ClaimPathFault::BadEscape { pointer });
        }
    }
}
