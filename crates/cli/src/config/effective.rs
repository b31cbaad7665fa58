//! The settings in force, for people and programs.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::reader::{Known, KnownKind};
use super::value::Shown;

/// The column at which the comments begin, where the settings leave room.
const COMMENT_COLUMN: usize = 44;

/// YAML that can be fed back, with who set what.
pub(crate) fn yaml(known: &[Known]) -> String {
    let mut text = String::new();
    for one in known {
        let depth = one.path.matches('.').count();
        let name = one.path.rsplit('.').next().unwrap_or_default();
        let indent = "  ".repeat(depth);
        let (line, comment) = match &one.kind {
            // A block of nothing but unset settings is still a block, but one of comments only reads
            // back as nothing, which is as good.
            KnownKind::Block { .. } => (format!("{indent}{name}:"), String::new()),
            KnownKind::Setting(setting) => match &setting.shown {
                Shown::Plain(value) if is_long(value) => {
                    let origin = setting.origin.to_string();
                    // Writing to a string does not fail.
                    let _ = writeln!(
                        text,
                        "{:<COMMENT_COLUMN$} # {origin}",
                        format!("{indent}{name}:")
                    );
                    write_block(value, depth + 1, &mut text);
                    continue;
                }
                Shown::Plain(value) => (
                    format!("{indent}{name}: {}", scalar(value)),
                    setting.origin.to_string(),
                ),
                Shown::Masked(value) => (
                    format!("{indent}# {name}: {}", scalar(value)),
                    format!("{}, not all of it shown", setting.origin),
                ),
                Shown::Secret => (
                    format!("{indent}# {name}: …"),
                    format!("{}, not shown", setting.origin),
                ),
                Shown::Unset => (format!("{indent}# {name}:"), "not set".to_owned()),
            },
        };
        // Writing to a string does not fail.
        let _ = if comment.is_empty() {
            writeln!(text, "{line}")
        } else {
            writeln!(text, "{line:<COMMENT_COLUMN$} # {comment}")
        };
    }
    text
}

/// The same as a tree of JSON; secrets are `"redacted"`, and what is not set is `null`.
pub(crate) fn json(known: &[Known]) -> Json {
    let mut root = Map::new();
    for one in known {
        let value = match &one.kind {
            KnownKind::Block { .. } => Json::Object(Map::new()),
            KnownKind::Setting(setting) => match &setting.shown {
                Shown::Plain(value) | Shown::Masked(value) => value.clone(),
                Shown::Secret => Json::from("redacted"),
                Shown::Unset => Json::Null,
            },
        };
        put(&mut root, &one.path, value);
    }
    Json::Object(root)
}

/// Puts a value at a path whose blocks are there already.
pub(super) fn put(root: &mut Map<String, Json>, path: &str, value: Json) {
    match path.split_once('.') {
        None => {
            root.insert(path.to_owned(), value);
        }
        Some((block, rest)) => {
            if let Some(Json::Object(inner)) = root.get_mut(block) {
                put(inner, rest, value);
            }
        }
    }
}

/// The longest list or block that is written on one line, in bytes.
const MAX_FLOW_BYTES: usize = 80;

/// Whether a value needs lines of its own.
fn is_long(value: &Json) -> bool {
    (value.is_array() || value.is_object()) && value.to_string().len() > MAX_FLOW_BYTES
}

/// Writes a list or a block on lines of its own.
fn write_block(value: &Json, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    // Writing to a string does not fail.
    let mut line = |head: &str, value: &Json| {
        if is_long(value) {
            let _ = writeln!(text, "{indent}{head}");
            write_block(value, depth + 1, text);
        } else {
            let _ = writeln!(text, "{indent}{head} {}", scalar(value));
        }
    };
    match value {
        Json::Array(items) => items.iter().for_each(|item| line("-", item)),
        Json::Object(fields) => {
            for (name, value) in fields {
                let name = scalar(&Json::from(name.as_str()));
                line(&format!("{name}:"), value);
            }
        }
        single => line("", single),
    }
}

/// A value as YAML has it: JSON, but without quotes where none are needed.
fn scalar(value: &Json) -> String {
    match value {
        Json::String(text) if is_bare(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_bare(text: &str) -> bool {
    let starts_plain =
        text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '/');
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:[] ".contains(char);
    let is_mapping = text.ends_with(':') || text.contains(": ");
    starts_plain && text.chars().all(is_plain) && !is_mapping && !text.ends_with(' ')
}
