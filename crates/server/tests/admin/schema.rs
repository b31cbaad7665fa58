//! JSON held against a schema: as much of JSON Schema as the document of the API uses. A word that is
//! not known here is a fault, so that nothing goes unchecked.

use serde_json::{Map, Value};

/// A document with its schemas.
pub(crate) struct Document(pub(crate) Value);

/// Words that say nothing about a value.
const SILENT: &[&str] = &["description", "format", "default"];

// === impl Document ===

impl Document {
    /// What is wrong with `value`, by `schema`; each fault with its place.
    pub(crate) fn faults(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, "$", &mut faults);
        faults
    }

    /// Follows a `$ref`, if it is one.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(reference) = value.get("$ref") else {
            return value;
        };
        let pointer = reference.as_str().and_then(|it| it.strip_prefix('#'));
        let target = pointer.and_then(|pointer| self.0.pointer(pointer));
        target.unwrap_or_else(|| panic!("nothing at {reference}"))
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
        let schema = self.resolve(schema).as_object().expect("a schema");
        for (word, argument) in schema {
            let is_met = match word.as_str() {
                "type" => is_of_type(argument, value),
                "enum" => argument.as_array().unwrap().contains(value),
                "minimum" => value
                    .as_f64()
                    .is_none_or(|it| it >= argument.as_f64().unwrap()),
                "maximum" => value
                    .as_f64()
                    .is_none_or(|it| it <= argument.as_f64().unwrap()),
                "minItems" => length(value).is_none_or(|it| it >= argument.as_u64().unwrap()),
                "maxItems" => length(value).is_none_or(|it| it <= argument.as_u64().unwrap()),
                "minLength" => value.as_str().is_none_or(|it| !it.is_empty()),
                "minProperties" => fields(value).is_none_or(|it| it >= argument.as_u64().unwrap()),
                "maxProperties" => fields(value).is_none_or(|it| it <= argument.as_u64().unwrap()),
                "anyOf" => {
                    let fits = |schema: &Value| self.faults(schema, value).is_empty();
                    argument.as_array().unwrap().iter().any(fits)
                }
                "required" => {
                    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                    !value.is_object() || argument.as_array().unwrap().iter().all(has)
                }
                "properties" | "items" | "additionalProperties" => true,
                other => SILENT.contains(&other),
            };
            if !is_met {
                faults.push(format!("{place}: {word} {argument} is not met by {value}"));
            }
        }
        self.check_inside(schema, value, place, faults);
    }

    fn check_inside(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &str,
        faults: &mut Vec<String>,
    ) {
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(items) = schema.get("items") {
                self.check(items, item, &format!("{place}[{index}]"), faults);
            }
        }
        let others = schema.get("additionalProperties");
        for (name, field) in value.as_object().into_iter().flatten() {
            match schema.get("properties").and_then(|it| it.get(name)) {
                Some(property) => self.check(property, field, &format!("{place}.{name}"), faults),
                None => match others {
                    Some(Value::Bool(false)) => {
                        faults.push(format!("{place}: {name} is not described"));
                    }
                    Some(others) => self.check(others, field, &format!("{place}.{name}"), faults),
                    None => {}
                },
            }
        }
    }
}

fn is_of_type(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| is_of_type(kind, value)),
        kind => match kind.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("{other} is no type"),
        },
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn fields(value: &Value) -> Option<u64> {
    value.as_object().map(|fields| fields.len() as u64)
}

#[test]
fn what_does_not_fit_is_seen() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"], "minimum": 1}, "e": {"enum": ["a"]}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let document = Document(Value::Null);
    let faults = |text: &str| {
        let value = serde_json::from_str(text).unwrap();
        document.faults(&schema, &value).len()
    };
    assert_eq!(faults(r#"{"n": 1, "e": "a"}"#), 0);
    assert_eq!(faults(r#"{"n": null}"#), 0);
    assert_eq!(faults(r#"{"n": 0}"#), 1);
    assert_eq!(faults(r#"{"n": "1"}"#), 1);
    assert_eq!(faults(r#"{"n": 1, "e": "b"}"#), 1);
    assert_eq!(faults("{}"), 1);
    assert_eq!(faults(r#"{"n": 1, "x": 1}"#), 1);
    assert_eq!(faults("[]"), 1);
}
