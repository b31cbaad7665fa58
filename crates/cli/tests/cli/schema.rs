//! The schemas in `deploy/schema`, held against files that are good and files that are not.
//!
//! The few words of JSON schema that ours use are checked by hand: a library for all of them would bring
//! three dozen packages along.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use tidegate_rules::document::{Findings, Kind, Node, Scalar, Style, parse};

/// A schema that files are held against.
struct Schema(Json);

// === impl Schema ===

impl Schema {
    fn read(name: &str) -> Self {
        let path = root().join("deploy/schema").join(name);
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    /// Why a file is not as the schema says, if it is not.
    fn faults(&self, path: &Path) -> Result<(), String> {
        self.check(&self.0, &tree(path))
    }

    fn check(&self, schema: &Json, value: &Json) -> Result<(), String> {
        for (word, wanted) in schema.as_object().unwrap() {
            let is_met = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "examples" => true,
                // It has the last word on what the fields hold.
                "properties" | "items" => {
                    self.check_inner(word, wanted, value)?;
                    true
                }
                "$ref" => return self.check(self.resolve(wanted), value),
                "anyOf" => self.any(wanted, value)?,
                "additionalProperties" => self.others(schema, wanted, value)?,
                "type" => is_of(wanted, value),
                "enum" => wanted.as_array().unwrap().contains(value),
                "const" => wanted == value,
                "required" => has_all(wanted, value),
                "pattern" => value.as_str().is_none_or(|text| fits(wanted, text)),
                "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
                "minLength" | "minItems" | "minProperties" => size(value) >= wanted.as_u64(),
                "maxItems" => size(value) <= wanted.as_u64(),
                other => panic!("{other} is no word that the schemas use"),
            };
            if !is_met {
                return Err(format!("{value} against {word}: {wanted}"));
            }
        }
        Ok(())
    }

    fn check_inner(&self, word: &str, wanted: &Json, value: &Json) -> Result<(), String> {
        match (word, value) {
            ("properties", Json::Object(fields)) => {
                let known = fields
                    .iter()
                    .filter_map(|(name, value)| Some((wanted.get(name)?, value)));
                known
                    .into_iter()
                    .try_for_each(|(schema, value)| self.check(schema, value))
            }
            ("items", Json::Array(items)) => {
                items.iter().try_for_each(|item| self.check(wanted, item))
            }
            _ => Ok(()),
        }
    }

    fn any(&self, choices: &Json, value: &Json) -> Result<bool, String> {
        let mut faults = Vec::new();
        for choice in choices.as_array().unwrap() {
            match self.check(choice, value) {
                Ok(()) => return Ok(true),
                Err(fault) => faults.push(fault),
            }
        }
        Err(faults.join("; "))
    }

    /// The fields that `properties` does not name.
    fn others(&self, schema: &Json, wanted: &Json, value: &Json) -> Result<bool, String> {
        let Json::Object(fields) = value else {
            return Ok(true);
        };
        let named = |name: &String| {
            schema
                .get("properties")
                .is_some_and(|all| all.get(name).is_some())
        };
        for (name, value) in fields.iter().filter(|(name, _)| !named(name)) {
            match wanted {
                Json::Bool(false) => return Err(format!("{name} is unknown")),
                schema => self.check(schema, value)?,
            }
        }
        Ok(true)
    }

    fn resolve(&self, reference: &Json) -> &Json {
        let pointer = reference.as_str().unwrap().trim_start_matches('#');
        self.0.pointer(pointer).unwrap()
    }
}

fn is_of(wanted: &Json, value: &Json) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is no type"),
    };
    match wanted {
        Json::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

fn has_all(wanted: &Json, value: &Json) -> bool {
    let mut names = wanted.as_array().unwrap().iter();
    let has = |fields: &Map<String, Json>, name: &Json| fields.contains_key(name.as_str().unwrap());
    value
        .as_object()
        .is_none_or(|fields| names.all(|name| has(fields, name)))
}

fn size(value: &Json) -> Option<u64> {
    let size = match value {
        Json::String(text) => text.chars().count(),
        Json::Array(items) => items.len(),
        Json::Object(fields) => fields.len(),
        _ => return None,
    };
    u64::try_from(size).ok()
}

/// Whether a text is as a pattern says; each pattern that the schemas use is spelt out here.
fn fits(pattern: &Json, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match pattern.as_str().unwrap() {
        "^([0-9]+(ns|us|ms|s|m|h|d|w))+$" => tidegate_rules::document::parse_duration(text).is_ok(),
        "^[0-9]+ *(B|KiB|MiB|GiB|kB|MB|GB)?$" => {
            let number = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
            digits(number.trim_end())
        }
        "^[1-9][0-9]*%$" => text.strip_suffix('%').is_some_and(digits) && !text.starts_with('0'),
        "^[0-9][0-9_]*$" => digits(&text.replace('_', "")),
        "^[A-Za-z0-9-]+$" => text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
        "^https?://" => text.starts_with("http://") || text.starts_with("https://"),
        "^http://" => text.starts_with("http://"),
        "^[1-5](xx|XX|[0-9]{2}(-[1-5][0-9]{2})?)$" => {
            let is_status = |text: &str| {
                text.len() == 3 && digits(text) && text.starts_with(['1', '2', '3', '4', '5'])
            };
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let class = text.to_lowercase().replace("xx", "00");
            is_status(first) && is_status(last) || is_status(&class)
        }
        units if units.starts_with("^([sS]") => {
            let units = ["second", "minute", "hour", "day", "week", "month", "year"];
            units.iter().any(|unit| text.eq_ignore_ascii_case(unit))
        }
        other => panic!("{other} is no pattern that the schemas use"),
    }
}

/// A file of YAML as the tree that an editor holds against the schema.
fn tree(path: &Path) -> Json {
    let mut findings = Findings::default();
    let bytes = fs::read(path).unwrap();
    let file = findings.add_source("file", &bytes);
    parse(file, &bytes, &mut findings).map_or(Json::Null, |node| json(&node))
}

fn json(node: &Node) -> Json {
    match &node.kind {
        _ if node.is_null() => Json::Null,
        Kind::Scalar(Scalar {
            text,
            style: Style::Text,
        }) => Json::from(text.clone()),
        Kind::Scalar(Scalar { text, .. }) => plain(text),
        Kind::List(nodes) => Json::Array(nodes.iter().map(json).collect()),
        Kind::Block(pairs) => {
            let fields = pairs.iter().map(|pair| {
                let name = pair.key.as_text().unwrap_or_default().to_owned();
                (name, json(&pair.value))
            });
            Json::Object(fields.collect())
        }
    }
}

fn plain(text: &str) -> Json {
    match text.to_ascii_lowercase().as_str() {
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        _ => match serde_json::from_str(text) {
            Ok(Json::Number(number)) => Json::Number(number),
            _ => Json::from(text),
        },
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The files of YAML below a folder, those of folders in it included.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_good_file_of_rules_is_as_the_schema_says() {
    let schema = Schema::read("rules.schema.json");
    let folders = [
        "crates/rules/tests/fixtures/valid",
        "crates/rules/tests/fixtures/warning",
        "deploy/rules",
    ];
    let all: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .collect();
    assert!(all.len() > 20, "{all:?}");
    for path in all {
        // What only books print is read, but no editor should propose it.
        let is_of_books = path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .starts_with("literature");
        // Likewise words in capitals.
        let is_spelt_oddly = ["scalars_of_every_spelling.yaml", "every_dialect.yaml"]
            .iter()
            .any(|name| path.ends_with(name));
        let checked = schema.faults(&path);
        if is_of_books {
            assert!(checked.is_err(), "{}", path.display());
        } else if !is_spelt_oddly {
            assert_eq!(checked, Ok(()), "{}", path.display());
        }
    }
}

#[test]
fn bad_files_of_rules_are_not_as_the_schema_says() {
    let schema = Schema::read("rules.schema.json");
    for name in [
        "misspelt_fields",
        "misplaced_fields",
        "wrong_shapes",
        "bad_words",
        "bad_windows",
        "bad_statuses",
        "root_is_a_list",
    ] {
        let path = root()
            .join("crates/rules/tests/fixtures/invalid")
            .join(name);
        assert!(
            schema.faults(&path.with_extension("yaml")).is_err(),
            "{name}"
        );
    }
}

#[test]
fn config_files_are_as_the_schema_says() {
    let schema = Schema::read("config.schema.json");
    let fixtures = root().join("crates/cli/tests/cli/fixtures");
    assert_eq!(schema.faults(&fixtures.join("config.yaml")), Ok(()));
    assert!(schema.faults(&fixtures.join("config_faults.yaml")).is_err());
    let example = root().join("deploy/tidegate.yaml");
    assert_eq!(schema.faults(&example), Ok(()));
    let read = crate::program::run(&["config", "--config", example.to_str().unwrap()]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    let output = crate::program::command(&["config"]).output().unwrap();
    let path = crate::program::scratch("effective").join("tidegate.yaml");
    fs::write(&path, output.stdout).unwrap();
    assert_eq!(
        schema.faults(&path),
        Ok(()),
        "what `tidegate config` prints"
    );
}

/// The values that a setting takes in a file, one file for each.
#[test]
fn what_the_reader_takes_the_schema_takes_too() {
    let schema = Schema::read("config.schema.json");
    for (at, text) in [
        "listeners: { http: off, grpc: { address: \"unix:/a\" } }",
        "rules: a.yaml",
        "rules: [a.yaml]",
        "rules: { paths: [a.yaml, b] }",
        "store: { max_memory: 1048576, state: /a/b }",
        "threads:",
        "observing: { log: { level: \"info,audit=off\" } }",
        "authorize: { descriptors: [address_hierarchy, { path: path }] }",
        "gateway: { upstream: \"http://a:1\", cors: \"*\", bounds: { max_body: 1MiB } }",
        "gateway: { upstreams: { a: \"https://a\", b: { targets: [\"http://b\"], health_check: /up } }, routes: \
         [{ upstream: a, method: GET, header: { x: 1, y: }, retry: [connect, 503] }, { path: /b, respond: 404 }, \
         { path: \"/c/{id}\", escaped_slashes: keep, upstream: b, require: { host: [c] }, request_headers: { set: { x: y } } }] }",
        "gateway: { upstream: \"http://a:1\", routes: [{ path: /chat, websocket: { descriptors: [{ user: \"header:x-user\" }], \
         messages: { limit: 20 }, control_frames: { limit: 5, window: 1s }, when_over: pause, max_pause: 5s } }] }",
        "identity: { labels: { asn: asn.csv }, tokens: { jwks: keys.json, issuer: any, audience: [a, b] } }",
    ]
    .into_iter()
    .enumerate()
    {
        let path = crate::program::scratch(&format!("taken_{at}")).join("tidegate.yaml");
        fs::write(&path, text).unwrap();
        assert_eq!(schema.faults(&path), Ok(()), "{text}");
        let read = crate::program::run(&["config", "--config", path.to_str().unwrap()]);
        assert_eq!(read.code, Some(0), "{text}: {}", read.stderr);
    }
}
