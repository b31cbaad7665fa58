//! YAML files as trees of JSON values, for serde to read.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Reads one document. Anchors and tags are not supported.
pub fn parse(text: &str) -> Result<Value, String> {
    let options = granit_parser::options! { emit_comments: false };
    let mut open: Vec<Open> = Vec::new();
    let mut root = Value::Null;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let value = match event {
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Block(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Block(fields, _)) => Value::Object(fields),
                None => continue,
            },
            Event::Alias(_) => return Err(format!("{span:?}: aliases are not supported")),
            _ => continue,
        };
        match open.last_mut() {
            None => root = value,
            Some(parent) => parent.add(value)?,
        }
    }
    Ok(root)
}

/// A list or block whose end has not come yet.
enum Open {
    List(Vec<Value>),
    Block(Map<String, Value>, Option<String>),
}

// === impl Open ===

impl Open {
    fn add(&mut self, value: Value) -> Result<(), String> {
        match self {
            Self::List(items) => items.push(value),
            Self::Block(fields, key) => match (key.take(), value) {
                (Some(key), value) => {
                    if fields.insert(key.clone(), value).is_some() {
                        return Err(format!("the field `{key}` is there twice"));
                    }
                }
                (None, Value::String(text)) => *key = Some(text),
                (None, other) => *key = Some(other.to_string()),
            },
        }
        Ok(())
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "" | "null" | "~" => Value::Null,
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Value::Number(whole.into()));
    }
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let float = is_plain.then(|| text.parse::<f64>().ok())??;
    Number::from_f64(float).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_lists_and_scalars_become_values() {
        let text = "a: 1\nb: [x, 2.5, true]\nc:\n  - { d: '1' }\n  - e: some text\n";
        let value = parse(text).unwrap();
        let expected =
            json!({"a": 1, "b": ["x", 2.5, true], "c": [{"d": "1"}, {"e": "some text"}]});
        assert_eq!(value, expected);
    }

    #[test]
    fn a_field_that_is_there_twice_is_an_error() {
        assert!(parse("a: 1\na: 2\n").is_err());
    }
}
