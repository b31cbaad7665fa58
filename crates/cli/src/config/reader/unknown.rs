//! What was written and nobody asked for.

use tidegate_rules::Severity;
use tidegate_rules::document::{Code, Finding, Kind, Node, Pair, Span, nearest, quote};

use super::{Known, KnownKind, Reader, join, variable};

// === impl Reader ===

impl Reader<'_> {
    pub(super) fn report_unknown(&mut self, block: &Node, path: &str) {
        let Kind::Block(pairs) = &block.kind else {
            if self.shorthand(path).is_none() && !block.is_null() {
                self.report_no_block(block);
            }
            return;
        };
        for pair in pairs {
            let Some(name) = pair.key.as_text() else {
                let message = format!("the name of a field is {}", pair.key.shape());
                self.findings
                    .push(Finding::error(Code::WrongShape, pair.key.span, message));
                continue;
            };
            let inner = join(path, name);
            match self.known.iter().find(|known| known.path == inner) {
                Some(Known {
                    kind: KnownKind::Block { .. },
                    ..
                }) => self.report_unknown(&pair.value, &inner),
                Some(_) => {}
                None => self.report_unknown_field(pair, name, path),
            }
        }
    }

    fn report_no_block(&mut self, node: &Node) {
        let message = format!("expected a block of fields, found {}", node.shape());
        self.findings
            .push(Finding::error(Code::WrongShape, node.span, message));
    }

    fn report_unknown_field(&mut self, pair: &Pair, name: &str, path: &str) {
        let place = if path.is_empty() {
            String::new()
        } else {
            format!(" in `{path}`")
        };
        let hint = if self.findings.is_full(Severity::Error) {
            None
        } else {
            self.hint_at_field(name, path)
        };
        let message = format!("unknown field {}{place}", quote(name));
        self.findings
            .push(Finding::error(Code::UnknownField, pair.key.span, message).maybe_hint(hint));
    }

    /// Names the field of a block that is nearest to `name`, else the same name in another block.
    fn hint_at_field(&self, name: &str, path: &str) -> Option<String> {
        let siblings = self.known.iter().filter_map(|known| {
            let inner = known.path.strip_prefix(path)?;
            let inner = inner.strip_prefix('.').unwrap_or(inner);
            (!inner.is_empty() && !inner.contains('.')).then_some(inner)
        });
        let near = nearest(name, siblings).map(|near| format!("did you mean `{near}`?"));
        let elsewhere = || {
            let named = |known: &&Known| known.path.rsplit('.').next() == Some(name);
            let other = self.known.iter().find(named)?;
            Some(format!("there is `{}`", other.path))
        };
        near.or_else(elsewhere)
    }

    pub(super) fn report_unknown_variables(&mut self) {
        let variables: Vec<String> = self
            .known
            .iter()
            .filter(|known| known.has_value())
            .map(|known| variable(&known.path))
            .collect();
        for written in &self.raw.environment {
            let name = &written.path;
            if !variables.contains(name) {
                // It may be a secret whose name is mistyped.
                self.findings.veil(written.node.span);
                let message = format!("unknown variable {}", quote(name));
                let span = Span {
                    column: 1,
                    end_column: name.chars().count() + 1,
                    ..written.node.span
                };
                let finding = Finding::error(Code::UnknownField, span, message);
                self.findings
                    .push(finding.hint(nearest_variable(name, &variables)));
            }
        }
    }
}

fn nearest_variable(name: &str, names: &[String]) -> String {
    // Compared without what all of them begin with, for the longer the words the farther the reach.
    let short = |name: &str| name.trim_start_matches("TIDEGATE_").to_lowercase();
    let shorts: Vec<String> = names.iter().map(|name| short(name)).collect();
    match nearest(&short(name), shorts.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `TIDEGATE_{}`?", near.to_uppercase()),
        None => {
            "`tidegate config` lists every setting; store.max_memory is TIDEGATE_STORE_MAX_MEMORY"
                .into()
        }
    }
}
