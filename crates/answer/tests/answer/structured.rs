//! What is a structured field is one by the word of a parser that is not ours.

use sfv::{BareItem, Item, List, ListEntry, Parser};
use tidegate_answer::Dialect;
use tidegate_limiter::{Hits, Verdict};

use crate::fixture::{ask, header, limiter};

/// What a client that knows structured fields learns of one limit.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) value: BareItem,
    pub(crate) parameters: Vec<(String, BareItem)>,
}

/// The members of a list, each an item with its parameters.
pub(crate) fn list(text: &str) -> Vec<Told> {
    let list: List = Parser::new(text)
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let told = |entry: ListEntry| match entry {
        ListEntry::Item(item) => told(item),
        ListEntry::InnerList(_) => panic!("{text}: a list in the list"),
    };
    list.into_iter().map(told).collect()
}

/// An item that is an integer.
pub(crate) fn integer(text: &str) -> i64 {
    let item: Item = Parser::new(text)
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    as_integer(&item.bare_item)
}

pub(crate) fn as_integer(item: &BareItem) -> i64 {
    match item {
        BareItem::Integer(integer) => i64::from(*integer),
        other => panic!("{other:?} is no integer"),
    }
}

// === impl Told ===

impl Told {
    pub(crate) fn name(&self) -> &str {
        match &self.value {
            BareItem::String(name) => name.as_str(),
            other => panic!("{other:?} is no name"),
        }
    }

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        let (_, item) = self.parameters.iter().find(|(its_key, _)| its_key == key)?;
        Some(as_integer(item))
    }
}

fn told(item: Item) -> Told {
    let parameters = item.params.into_iter();
    Told {
        value: item.bare_item,
        parameters: parameters
            .map(|(key, value)| (key.as_str().to_owned(), value))
            .collect(),
    }
}

const RULES: &str = r#"
- {key: odd, rate_limit: {unit: minute, requests_per_unit: 3, name: "a \"b\" \\ c"}}
- {key: text, rate_limit: {unit: hour, requests_per_unit: 72057594037927936, name: "früh\tund\nspät"}}
- {key: short, rate_limit: {window: 1500ms, limit: 4}}
"#;

fn verdict() -> Verdict {
    ask(&limiter(RULES), &["odd", "text", "short"], Hits::OfRequest)
}

#[test]
fn ietf_is_read_as_it_is_meant() {
    let verdict = verdict();
    let policies = list(&header(&verdict, Dialect::Ietf, "ratelimit-policy").unwrap());
    let names: Vec<&str> = policies.iter().map(Told::name).collect();
    assert_eq!(names, ["a \"b\" \\ c", "fr_h_und_sp_t", "per-1.5s"]);
    let numbers = |told: &Told| (told.integer("q").unwrap(), told.integer("w").unwrap());
    let numbers: Vec<(i64, i64)> = policies.iter().map(numbers).collect();
    assert_eq!(numbers, [(3, 60), (999_999_999_999_999, 3_600), (4, 2)]);
    let standings = list(&header(&verdict, Dialect::Ietf, "ratelimit").unwrap());
    let numbers = |told: &Told| (told.integer("r").unwrap(), told.integer("t").unwrap());
    let numbers: Vec<(i64, i64)> = standings.iter().map(numbers).collect();
    assert_eq!(numbers, [(2, 60), (999_999_999_999_999, 3_600), (3, 2)]);
}

#[test]
fn ietf_06_is_read_as_it_is_meant() {
    let verdict = verdict();
    let number = |name| integer(&header(&verdict, Dialect::Ietf06, name).unwrap());
    assert_eq!(number("ratelimit-limit"), 3);
    assert_eq!(number("ratelimit-remaining"), 2);
    assert_eq!(number("ratelimit-reset"), 60);
    let policies = list(&header(&verdict, Dialect::Ietf06, "ratelimit-policy").unwrap());
    let numbers = |told: &Told| (as_integer(&told.value), told.integer("w").unwrap());
    let numbers: Vec<(i64, i64)> = policies.iter().map(numbers).collect();
    assert_eq!(numbers, [(3, 60), (999_999_999_999_999, 3_600), (4, 2)]);
}

#[test]
fn envoys_list_is_read_as_it_is_meant() {
    let limits = list(&header(&verdict(), Dialect::Envoy, "x-ratelimit-limit").unwrap());
    let (first, all) = limits.split_first().unwrap();
    assert_eq!((as_integer(&first.value), all.len()), (3, 3));
    assert_eq!(all[0].integer("w"), Some(60));
    let BareItem::String(name) = &all[0].parameters[1].1 else {
        panic!("{all:?}");
    };
    assert_eq!(name.as_str(), "a \"b\" \\ c");
    // One without a name of the operator's has none here.
    assert_eq!(all[2].parameters.len(), 1);
}
