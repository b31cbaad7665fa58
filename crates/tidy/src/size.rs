//! Files and functions small enough to hold in mind.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Ident, ImplItemFn, ItemFn, TraitItemFn};

use crate::{Fault, Source};

/// Lines of a file before its tests. From the codebases the house style is learnt from: 95 of 100
/// files of the calm ones stay under this.
pub const MAX_FILE_LINES: usize = 400;

/// Lines of a function, signature and braces included. From the same place.
pub const MAX_FUNCTION_LINES: usize = 60;

struct Functions<'a> {
    source: &'a Source,
    faults: Vec<Fault>,
}

/// Finds a file with more than [`MAX_FILE_LINES`] before its tests.
pub fn long_file(source: &Source) -> Option<Fault> {
    let lines = source.lines_before_tests();
    (lines > MAX_FILE_LINES).then(|| {
        let message = format!("{lines} lines before tests, at most {MAX_FILE_LINES}");
        Fault::new(&source.path, message)
    })
}

/// Finds functions outside tests with more than [`MAX_FUNCTION_LINES`].
pub fn long_functions(source: &Source) -> Vec<Fault> {
    let mut functions = Functions {
        source,
        faults: Vec::new(),
    };
    functions.visit_file(&source.syntax);
    functions.faults
}

// === impl Functions ===

impl Functions<'_> {
    fn measure(&mut self, name: &Ident, start: Span, body: &Block) {
        let first = start.start().line;
        let lines = body.span().end().line + 1 - first;
        if lines > MAX_FUNCTION_LINES && !self.source.is_test(first) {
            let message = format!("fn {name} has {lines} lines, at most {MAX_FUNCTION_LINES}");
            self.faults
                .push(Fault::at(&self.source.path, first, message));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.measure(&item.sig.ident, item.sig.span(), &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.measure(&item.sig.ident, item.sig.span(), &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.measure(&item.sig.ident, item.sig.span(), body);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_may_have_400_lines_and_no_more() {
        let check = |lines| long_file(&Source::parse("crates/a/src/lib.rs", &"\n".repeat(lines)));
        assert_eq!(check(400), None);
        assert!(check(401).is_some());
    }

    #[test]
    fn lines_of_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(900));
        assert_eq!(
            long_file(&Source::parse("crates/a/src/lib.rs", &tests)),
            None
        );
    }

    #[test]
    fn a_function_may_have_60_lines_and_no_more() {
        let check = |text: &str| long_functions(&Source::parse("crates/a/src/lib.rs", text)).len();
        assert_eq!(check(&function_of(60)), 0);
        assert_eq!(check(&function_of(61)), 1);
        assert_eq!(check(&format!("impl Foo {{ {} }}", function_of(61))), 1);
        assert_eq!(check(&format!("trait Foo {{ {} }}", function_of(61))), 1);
        assert_eq!(
            check(&format!("#[cfg(test)] mod tests {{ {} }}", function_of(61))),
            0
        );
    }
}
