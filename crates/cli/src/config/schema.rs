//! The config file as a JSON schema, for editors.

use serde_json::{Map, Value as Json, json};

use super::reader::{Known, KnownKind};
use super::value::Shown;

/// The schema of the settings.
pub(crate) fn config(known: &[Known]) -> Json {
    let mut schema = block(known, "", None);
    let Json::Object(fields) = &mut schema else {
        return schema;
    };
    fields.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    fields.insert("title".to_owned(), json!("tidegate.yaml"));
    schema
}

/// The settings directly in the block at `path`.
pub(super) fn block(known: &[Known], path: &str, shorthand: Option<&str>) -> Json {
    let mut properties = Map::new();
    for one in known {
        let Some(name) = child(path, &one.path) else {
            continue;
        };
        let mut schema = match &one.kind {
            KnownKind::Block { shorthand } => block(known, &one.path, *shorthand),
            KnownKind::Setting(one) => setting(&one.schema, &one.default),
        };
        if let Json::Object(fields) = &mut schema {
            fields.insert("description".to_owned(), json!(one.about));
        }
        properties.insert(name.to_owned(), schema);
    }
    let single = shorthand.and_then(|name| properties.get(name).cloned());
    let block = json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": properties,
    });
    match single {
        Some(single) => json!({ "anyOf": [single, block] }),
        None => block,
    }
}

/// A setting; one that holds nothing is as good as absent.
fn setting(schema: &Json, default: &Shown) -> Json {
    let mut setting = json!({ "anyOf": [schema, { "type": "null" }] });
    if let (Shown::Plain(value), Json::Object(fields)) = (default, &mut setting) {
        fields.insert("default".to_owned(), value.clone());
    }
    setting
}

/// The name of `inner` in the block at `path`, if it lies directly there.
fn child<'p>(path: &str, inner: &'p str) -> Option<&'p str> {
    let name = if path.is_empty() {
        inner
    } else {
        inner.strip_prefix(path)?.strip_prefix('.')?
    };
    (!name.contains('.')).then_some(name)
}
