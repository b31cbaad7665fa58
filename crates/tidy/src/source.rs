//! One Rust file, with what is test code told apart from what is not.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Block, Ident, ImplItemFn, Item, ItemFn, Signature, TraitItemFn};

/// A parsed Rust file: plain data, so that one listing serves all rules.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, from the root of the repository.
    pub path: String,
    /// What the file is for.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// How many lines it has.
    pub lines: usize,
    /// The types it declares: structs, enums, unions, traits and aliases.
    pub types: Vec<TypeName>,
    /// Its functions with a body.
    pub functions: Vec<Function>,
    /// Its tokens in reading order. Comments and the text of literals are not among them.
    pub tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is part of the product.
    Product,
    /// It is a test or an example.
    Test,
    /// It is a tool beside the product: the benchmark, the fuzz targets.
    Tool,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line its signature begins on, counted from 1.
    pub line: usize,
    /// How many lines it has, signature and braces included.
    pub lines: usize,
}

/// The declaration of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// Its name.
    pub name: String,
    /// The line the name stands on, counted from 1.
    pub line: usize,
}

/// One token: an identifier, a bracket or a single character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its text; empty for a literal.
    pub text: String,
    /// The line it stands on, counted from 1.
    pub line: usize,
}

#[derive(Default)]
struct TestLines(Vec<RangeInclusive<usize>>);

#[derive(Default)]
struct Functions(Vec<Function>);

#[derive(Default)]
struct Types(Vec<TypeName>);

// === impl Source ===

impl Source {
    /// Parses one file.
    ///
    /// # Panics
    ///
    /// If the text is not Rust.
    pub fn parse(path: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let stream: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut tests = TestLines::default();
        tests.visit_file(&syntax);
        let mut functions = Functions::default();
        functions.visit_file(&syntax);
        let mut types = Types::default();
        types.visit_file(&syntax);
        Self {
            path: path.to_owned(),
            role: Role::of(path),
            text: text.to_owned(),
            lines: text.lines().count(),
            types: types.0,
            functions: functions.0,
            tokens,
            test_lines: tests.0,
        }
    }

    /// Whether the line belongs to a test.
    pub fn is_test(&self, line: usize) -> bool {
        self.role == Role::Test || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Returns true if the line is inside a function with a body.
    pub fn is_in_function(&self, line: usize) -> bool {
        let mut functions = self.functions.iter();
        functions.any(|function| (function.line..function.line + function.lines).contains(&line))
    }

    /// How many lines the file has without its tests.
    pub fn lines_before_tests(&self) -> usize {
        (1..=self.lines).filter(|&line| !self.is_test(line)).count()
    }
}

// === impl Role ===

impl Role {
    /// Tells from the path what a file is for.
    pub fn of(path: &str) -> Self {
        let is_test = path.ends_with("/tests.rs")
            || path.ends_with("_tests.rs")
            || path
                .split('/')
                .any(|part| matches!(part, "tests" | "examples" | "benches"));
        if is_test {
            Self::Test
        } else if path.starts_with("crates/") && !path.starts_with("crates/tidy/") {
            Self::Product
        } else {
            Self::Tool
        }
    }
}

// === impl TestLines ===

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_attribute) {
            let span = item.span();
            self.0.push(span.start().line..=span.end().line);
        } else {
            syn::visit::visit_item(self, item);
        }
    }
}

// === impl Functions ===

impl Functions {
    fn add(&mut self, signature: &Signature, body: &Block) {
        let line = signature.span().start().line;
        self.0.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: body.span().end().line + 1 - line,
        });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

// === impl Types ===

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Some(name) = declared_type(item) {
            self.0.push(TypeName {
                name: name.to_string(),
                line: name.span().start().line,
            });
        }
        syn::visit::visit_item(self, item);
    }
}

const fn declared_type(item: &Item) -> Option<&Ident> {
    match item {
        Item::Enum(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]`, `#[cfg(test)]` and the like, `#[cfg(not(test))]` excepted.
fn is_test_attribute(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    let mut words = Vec::new();
    flatten(list.tokens.clone(), &mut words);
    let says = |word: &str| words.iter().any(|token| token.text == word);
    list.path.is_ident("cfg") && says("test") && !says("not")
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let mut push = |text: String, line| into.push(Token { text, line });
        match tree {
            TokenTree::Ident(ident) => push(ident.to_string(), line),
            TokenTree::Punct(punct) => push(punct.as_char().to_string(), line),
            TokenTree::Literal(_) => push(String::new(), line),
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                push(open.to_owned(), group.span_open().start().line);
                flatten(group.stream(), into);
                into.push(Token {
                    text: close.to_owned(),
                    line: group.span_close().start().line,
                });
            }
        }
    }
}

const fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_the_path() {
        assert_eq!(Role::of("crates/store/src/clock.rs"), Role::Product);
        assert_eq!(Role::of("crates/store/src/table/tests.rs"), Role::Test);
        assert_eq!(Role::of("crates/store/src/loom_tests.rs"), Role::Test);
        assert_eq!(Role::of("crates/store/tests/stress.rs"), Role::Test);
        assert_eq!(Role::of("bench/src/main.rs"), Role::Tool);
    }

    #[test]
    fn test_modules_are_told_apart() {
        let source = Source::parse(
            "crates/a/src/lib.rs",
            "fn product() {}\n#[cfg(test)]\nmod tests {\n    fn helper() {}\n}\nfn more() {}\n",
        );
        let tests: Vec<usize> = (1..=6).filter(|&line| source.is_test(line)).collect();
        assert_eq!(tests, [2, 3, 4, 5]);
        assert_eq!(source.lines_before_tests(), 2);
    }

    #[test]
    fn code_outside_tests_is_no_test() {
        let source = Source::parse(
            "crates/a/src/lib.rs",
            "#[cfg(not(test))]\nfn product() {}\n",
        );
        assert_eq!(source.lines_before_tests(), 2);
    }
}
