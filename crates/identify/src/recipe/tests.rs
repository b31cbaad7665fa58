use std::borrow::Cow;
use std::net::IpAddr;

use super::*;
use crate::{Headers, Identities};

/// The only header is `x-api-key`, with this value.
struct ApiKey(&'static str);

impl Headers for ApiKey {
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "x-api-key").then_some(Cow::Borrowed(self.0))
    }
}

fn request(client: &str) -> Request<'static> {
    Request {
        method: Some("POST"),
        uri: Some("//login?user=42"),
        host: Some("API.example:443"),
        client: client.parse::<IpAddr>().ok(),
        headers: &ApiKey("k1"),
        identities: Identities::none(),
        claims: None,
        certificate: None,
        route: None,
    }
}

/// The descriptors of `request`, one to a line.
fn describe(recipes: &Recipes, request: &Request<'_>) -> String {
    let values = recipes.values(request);
    let described = recipes.describe(&values, DescribedPart::All);
    let line = |descriptor: &Descriptor<'_>| {
        let entry = |entry: &Entry<'_>| format!("{}={}", entry.key, entry.value);
        let entries: Vec<_> = descriptor.entries.iter().map(entry).collect();
        entries.join(" ")
    };
    let lines: Vec<_> = described.descriptors().iter().map(line).collect();
    lines.join("\n")
}

fn recipes(list: &[&[(&str, &str)]]) -> Recipes {
    let recipe = |entries: &&[(&str, &str)]| {
        let ingredient = |(key, from): &(&str, &str)| Ingredient {
            key: (*key).to_owned(),
            from: from.parse().expect(from),
        };
        Recipe(entries.iter().map(ingredient).collect())
    };
    Recipes::new(list.iter().map(recipe).collect()).expect("recipes")
}

#[test]
fn the_default_says_who_what_and_both() {
    assert_eq!(
        describe(&Recipes::default(), &request("2001:db8::1")),
        "remote_address=2001:db8::\n\
         path=/login\n\
         path=/login method=POST\n\
         path=/login remote_address=2001:db8::\n\
         path=/login method=POST remote_address=2001:db8::"
    );
    assert!(Recipes::new(Recipes::default().list().to_vec()).is_ok());
}

#[test]
fn every_source_has_its_value() {
    let recipes = recipes(&[&[
        ("a", "header:X-Api-Key"),
        ("b", "method"),
        ("c", "path"),
        ("d", "host"),
        ("e", "query:user"),
        ("f", "client_address ipv4/24"),
        ("g", "constant:x:y z"),
    ]]);
    assert_eq!(
        describe(&recipes, &request("203.0.113.7")),
        "a=k1 b=POST c=/login d=api.example e=42 f=203.0.113.0 g=x:y z"
    );
}

#[test]
fn a_descriptor_that_lacks_a_value_is_left_out() {
    let recipes = recipes(&[
        &[("key", "header:x-api-key"), ("other", "header:x-other")],
        &[("key", "header:x-api-key")],
        &[("none", "query:none"), ("key", "header:x-api-key")],
    ]);
    assert_eq!(describe(&recipes, &request("203.0.113.7")), "key=k1");
    let nobody = Request {
        headers: &ApiKey(""),
        ..request("")
    };
    assert_eq!(describe(&recipes, &nobody), "", "what is empty is absent");
}

#[test]
fn the_hierarchy_speaks_of_networks_for_ipv6_only() {
    let recipes = Recipes::new(Recipe::address_hierarchy().to_vec()).expect("recipes");
    assert_eq!(
        describe(&recipes, &request("2001:db8:1:2ff::7")),
        "remote_address=2001:db8:1:2ff::\n\
         remote_address_56=2001:db8:1:200::\n\
         remote_address_48=2001:db8:1::"
    );
    assert_eq!(
        describe(&recipes, &request("203.0.113.7")),
        "remote_address=203.0.113.7"
    );
}

#[test]
fn a_source_prints_as_it_reads() {
    for text in [
        "header:x-api-key",
        "method",
        "path",
        "host",
        "query:user id",
        "client_address",
        "client_address ipv4/24",
        "client_address ipv6/56",
        "client_address ipv4/0 ipv6/128",
        "constant:a:b",
    ] {
        let source: Source = text.parse().expect(text);
        assert_eq!(source.to_string(), text);
    }
}

#[test]
fn what_is_no_source_is_named() {
    let check = |text: &str, expected: &str| {
        let fault = text.parse::<Source>().expect_err(text);
        assert!(fault.to_string().contains(expected), "{fault}");
    };
    check("", "`` is no source; write client_address, ");
    check("Path", "`Path` is no source");
    check("path x", "`path x` is no source");
    check("body:x", "`body:x` is no source");
    check("header:", "nothing stands after `header:`");
    check("header:x y", "`x y` is no name of a header");
    check("constant:", "nothing stands after `constant:`");
    for prefixes in [
        "ipv4",
        "ipv4/33",
        "ipv6/129",
        "ipv4/x",
        "ipv5/1",
        "ipv4/1 ipv4/2",
        " ",
    ] {
        check(&format!("client_address {prefixes}"), "are no prefixes");
    }
}

#[test]
fn faulty_recipes_are_refused() {
    let check = |recipes: Vec<Recipe>, expected: RecipeFault| {
        assert_eq!(Recipes::new(recipes), Err(expected));
    };
    let good = || Recipe::new([("path", Source::Path)]);
    check(Vec::new(), RecipeFault::Empty);
    check(vec![good(); 33], RecipeFault::TooMany { given: 33 });
    let fault = RecipeFault::NoEntries { descriptor: 2 };
    check(vec![good(), Recipe::new([])], fault);
    let fault = RecipeFault::NoKey { descriptor: 1 };
    check(vec![Recipe::new([("", Source::Path)])], fault);
    let Recipe(entries) = good();
    let too_many = entries.iter().cycle().take(33).cloned().collect();
    let fault = RecipeFault::TooManyEntries {
        descriptor: 1,
        given: 33,
    };
    check(vec![Recipe(too_many)], fault);
}
