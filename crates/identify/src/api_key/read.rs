//! The table of API keys as a YAML file.

use std::collections::HashMap;

use tidegate_rules::Report;
use tidegate_rules::document::{
    self, Code, Finding, Findings, Kind, Node, Pair, Span, did_you_mean, one_of, quote,
};

use super::{ApiKey, ApiKeyTable, HASH_BYTES};

/// The longest id, plan or tenant.
const MAX_NAME_BYTES: usize = 128;

const FIELDS: [&str; 4] = ["id", "hash", "plan", "tenant"];

/// Reads a table and keeps the places of ids and hashes, to report those that stand twice.
struct TableReader<'a> {
    table: ApiKeyTable,
    findings: &'a mut Findings,
    ids: HashMap<Box<str>, Span>,
    hashes: HashMap<[u8; HASH_BYTES], Span>,
}

// === impl ApiKeyTable ===

impl ApiKeyTable {
    /// Reads a table file, or reports all its faults. `name` is the name of the file in the report.
    ///
    /// ```yaml
    /// keys:
    ///   - id: acme-1
    ///     hash: 7a38bf81f383f69433ad6e900d35b3e2385593f76a7b7ab5d4355b8ba41ee24b
    ///     plan: premium
    ///     tenant: acme
    /// ```
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, Report> {
        let mut findings = Findings::default();
        let file = findings.add_source(name, bytes);
        let table = match document::parse(file, bytes, &mut findings) {
            Some(root) => {
                let mut reader = TableReader {
                    table: Self::default(),
                    findings: &mut findings,
                    ids: HashMap::new(),
                    hashes: HashMap::new(),
                };
                reader.read(&root);
                reader.table
            }
            None if findings.has_errors() => Self::default(),
            None => {
                let message = "the table of API keys is empty";
                let finding = Finding::error(Code::EmptyFile, Span::start_of(file), message);
                findings.push(finding.hint("begin with `keys:`; no keys are `keys: []`"));
                Self::default()
            }
        };
        if findings.has_errors() {
            return Err(findings.into_report());
        }
        Ok(table)
    }
}

// === impl TableReader ===

impl TableReader<'_> {
    fn read(&mut self, root: &Node) {
        let Kind::Block(pairs) = &root.kind else {
            self.fault_shape(root, "the table of API keys", "a block with `keys:`");
            return;
        };
        let mut has_keys = false;
        for pair in pairs {
            match pair.key.as_text() {
                Some("keys") => {
                    has_keys = true;
                    self.read_keys(&pair.value);
                }
                _ => self.fault_unknown(pair, ["keys"]),
            }
        }
        if !has_keys {
            let finding = Finding::error(Code::MissingField, root.span, "`keys` is missing");
            self.findings.push(finding);
        }
    }

    fn read_keys(&mut self, node: &Node) {
        let Kind::List(nodes) = &node.kind else {
            self.fault_shape(node, "`keys`", "a list; begin each key with `-`");
            return;
        };
        for node in nodes {
            match &node.kind {
                Kind::Block(pairs) => self.read_key(node.span, pairs),
                _ => self.fault_shape(node, "a key", "a block with `id:` and `hash:`"),
            }
        }
    }

    fn read_key(&mut self, span: Span, pairs: &[Pair]) {
        let (mut id, mut hash, mut plan, mut tenant) = (None, None, None, None);
        for pair in pairs {
            match pair.key.as_text() {
                Some("id") => id = Some(pair),
                Some("hash") => hash = Some(pair),
                Some("plan") => plan = self.read_name(&pair.value, "plan"),
                Some("tenant") => tenant = self.read_name(&pair.value, "tenant"),
                _ => self.fault_unknown(pair, FIELDS),
            }
        }
        for (field, name) in [(id, "id"), (hash, "hash")] {
            if field.is_none() {
                let message = format!("`{name}` is missing");
                self.findings
                    .push(Finding::error(Code::MissingField, span, message));
            }
        }
        let id = id.and_then(|pair| self.read_id(&pair.value));
        let hash = hash.and_then(|pair| self.read_hash(&pair.value));
        if let (Some(id), Some(hash)) = (id, hash) {
            let entry = ApiKey { id, plan, tenant };
            self.table.entries.insert(hash, entry);
        }
    }

    fn read_id(&mut self, node: &Node) -> Option<Box<str>> {
        let id = self.read_name(node, "id")?;
        if let Some(first) = self.ids.insert(id.clone(), node.span) {
            self.fault_duplicate(node.span, &format!("the id {}", quote(&id)), first);
        }
        Some(id)
    }

    fn read_name(&mut self, node: &Node, field: &str) -> Option<Box<str>> {
        let name = node.as_text().filter(|_| !node.is_null());
        let is_good = |name: &&str| {
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
        };
        let good = name.filter(is_good);
        if good.is_none() {
            let message = format!(
                "`{field}` is a text of 1 to {MAX_NAME_BYTES} bytes without control characters"
            );
            self.findings
                .push(Finding::error(Code::BadValue, node.span, message));
        }
        good.map(Box::from)
    }

    fn read_hash(&mut self, node: &Node) -> Option<[u8; HASH_BYTES]> {
        let Some(hash) = node.as_text().and_then(parse_hex) else {
            let message = "`hash` is 64 hexadecimal digits";
            let finding = Finding::error(Code::BadValue, node.span, message);
            self.findings
                .push(finding.hint("make it by `tidegate hash-key`"));
            return None;
        };
        if let Some(first) = self.hashes.insert(hash, node.span) {
            self.fault_duplicate(node.span, "this hash", first);
        }
        Some(hash)
    }

    fn fault_duplicate(&mut self, span: Span, subject: &str, first: Span) {
        let message = format!("{subject} is already on line {}", first.line);
        self.findings
            .push(Finding::error(Code::DuplicateName, span, message));
    }

    fn fault_shape(&mut self, node: &Node, subject: &str, expected: &str) {
        let message = format!("{subject} is {expected}; found {}", node.shape());
        self.findings
            .push(Finding::error(Code::WrongShape, node.span, message));
    }

    fn fault_unknown<const N: usize>(&mut self, pair: &Pair, known: [&'static str; N]) {
        let field = pair.key.as_text().unwrap_or_default();
        let message = format!(
            "{} is not a field; there is {}",
            quote(field),
            one_of(known)
        );
        let finding = Finding::error(Code::UnknownField, pair.key.span, message);
        self.findings
            .push(finding.maybe_hint(did_you_mean(field, known)));
    }
}

fn parse_hex(text: &str) -> Option<[u8; HASH_BYTES]> {
    let mut hash = [0; HASH_BYTES];
    let digits = text.as_bytes();
    if digits.len() != 2 * HASH_BYTES {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(hash)
}
