//! JSON as it is written: fields in order, and each of them as often as it stands there.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A JSON value. Its texts are those of the body, unless they have escapes. How deep it goes is bounded
/// by the parser, how large it is by the body.
#[derive(Debug)]
pub(crate) enum Json<'a> {
    Null,
    Flag,
    /// A whole number from 0 on.
    Count(u64),
    /// Any other number.
    Number,
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<Field<'a>>),
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: Json<'a>,
}

/// The name of a field.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct JsonVisitor;

// === impl Json ===

impl Json<'_> {
    /// What it is, for people.
    pub(super) const fn shape(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag => "true or false",
            Self::Count(_) | Self::Number => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

// === impl JsonVisitor ===

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json<'de>, E> {
        Ok(Json::Flag)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Count(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Name(name), value)) = object.next_entry()? {
            fields.push(Field { name, value });
        }
        Ok(Json::Object(fields))
    }
}
