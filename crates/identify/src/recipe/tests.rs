use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::identities::TokenFound;
use crate::{
    AcceptedNames, ApiKeyHasher, ApiKeyTable, ApiKeys, ClaimPath, Claims, HeaderText, Headers,
    Identities, LabelTable, TokenKeys, TokenSettings, TokenVerifier,
};

const SECRET: &[u8] = b"a secret that only tests share..";

/// The only headers are `x-api-key`, with this value, and a cookie.
struct ApiKey(&'static str);

impl Headers for ApiKey {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        match name {
            "x-api-key" => Some(self.0.into()),
            "cookie" => Some("theme=dark; session=s7".into()),
            _ => None,
        }
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

/// Identities that know the API key `k1`, a table of labels, and the claims of plans and tenants.
fn identities(plan: &str) -> Identities {
    let hasher = ApiKeyHasher::new(&[7; 32]).expect("a hasher");
    let table = format!(
        "keys: [{{id: acme-1, hash: {}{plan}}}]",
        hasher.hash_hex("k1")
    );
    let table = ApiKeyTable::read("keys.yaml", table.as_bytes()).expect("a table");
    let place = "header:x-api-key".parse().expect("a place");
    let labels = LabelTable::read(b"203.0.113.0/24,AS64500").expect("labels");
    let settings = TokenSettings {
        plan_claim: Some(ClaimPath::Name("plan".to_owned())),
        tenant_claim: Some(ClaimPath::Pointer("/org/name".to_owned())),
        ..TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any)
    };
    let keys = TokenKeys::from_secret(SECRET).expect("a secret");
    Identities::default()
        .with_api_keys(Arc::new(ApiKeys::new(place, hasher, table)))
        .with_labels("asn", Arc::new(labels))
        .with_tokens(Arc::new(TokenVerifier::new(settings, keys)))
}

/// The claims of a token that `identities` accept.
fn claims(identities: &Identities) -> Arc<Claims> {
    struct TokenHeader(String);

    impl Headers for TokenHeader {
        fn value(&self, _: &str) -> Option<HeaderText<'_>> {
            Some(self.0.as_str().into())
        }
    }

    let claims = br#"{"sub":"u7","exp":2000000000,"plan":"gold","org":{"name":"umbrella"}}"#;
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let message = format!("{}.{}", encode(br#"{"alg":"HS256"}"#), encode(claims));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET);
    let signature = encode(ring::hmac::sign(&key, message.as_bytes()).as_ref());
    let headers = TokenHeader(format!("Bearer {message}.{signature}"));
    let TokenFound::Unverified(token) = identities.find_token(&headers, 0) else {
        panic!("the token is not found")
    };
    let tokens = identities.tokens().expect("a verifier");
    tokens.verify(&token, None, 0).expect("a good token")
}

/// The descriptors of `request`, one to a line.
fn describe(recipes: &Recipes, request: &Request<'_>) -> String {
    describe_part(recipes, request, DescribedPart::All)
}

fn describe_part(recipes: &Recipes, request: &Request<'_>, part: DescribedPart) -> String {
    let (mut values, mut entries) = (Values::default(), Entries::default());
    recipes.read(request, &mut values).expect("one meaning");
    let mut descriptors = Descriptors::new();
    recipes.describe(&values, part, &mut entries, &mut descriptors);
    let line = |descriptor: &Descriptor<'_>| {
        let entry = |entry: &Entry<'_>| format!("{}={}", entry.key, entry.value);
        let entries: Vec<_> = descriptor.entries.iter().map(entry).collect();
        entries.join(" ")
    };
    let lines: Vec<_> = descriptors.iter().map(line).collect();
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
        ("h", "cookie:session"),
        ("i", "path_segment:1"),
    ]]);
    assert_eq!(
        describe(&recipes, &request("203.0.113.7")),
        "a=k1 b=POST c=/login d=api.example e=42 f=203.0.113.0 g=x:y z h=s7 i=login"
    );
}

#[test]
fn callers_have_values_of_keys_and_tables() {
    let recipes = recipes(&[
        &[("a", "api_key")],
        &[("b", "plan")],
        &[("c", "tenant")],
        &[("d", "label:asn")],
        &[("e", "claim:sub")],
        &[("f", "claim:/org/name")],
        &[("g", "certificate")],
        &[("h", "route")],
    ]);
    let check = |identities: &Identities, client: &str, claims: Option<&Claims>, expected: &str| {
        let request = Request {
            identities,
            claims,
            certificate: Some("CN=robot"),
            route: Some("posts"),
            ..request(client)
        };
        let lines = describe(&recipes, &request);
        assert_eq!(lines.replace('\n', " "), expected);
    };
    let of_table = identities(", plan: premium, tenant: acme");
    let of_token = identities("");
    let claims = claims(&of_table);
    let claims = Some(&*claims);
    let (known, unknown) = ("203.0.113.7", "198.51.100.7");
    check(
        &of_table,
        known,
        claims,
        "a=acme-1 b=premium c=acme d=AS64500 e=u7 f=umbrella g=CN=robot h=posts",
    );
    check(
        &of_token,
        known,
        claims,
        "a=acme-1 b=gold c=umbrella d=AS64500 e=u7 f=umbrella g=CN=robot h=posts",
    );
    check(&of_token, unknown, None, "a=acme-1 g=CN=robot h=posts");
    check(Identities::none(), known, None, "g=CN=robot h=posts");
    check(
        Identities::none(),
        known,
        claims,
        "e=u7 f=umbrella g=CN=robot h=posts",
    );
}

#[test]
fn an_unknown_api_key_has_no_value() {
    let recipes = recipes(&[&[("a", "api_key")], &[("b", "plan")], &[("c", "method")]]);
    let identities = identities(", plan: premium");
    for key in ["k2", "k1,k1", ""] {
        let request = Request {
            identities: &identities,
            headers: &ApiKey(key),
            ..request("")
        };
        assert_eq!(describe(&recipes, &request), "c=POST", "{key}");
    }
}

#[test]
fn recipes_are_split_by_the_need_of_a_token() {
    let split = recipes(&[
        &[("a", "method")],
        &[("b", "method"), ("c", "claim:sub")],
        &[("d", "constant:x")],
        &[("e", "plan")],
        &[("f", "tenant")],
        &[("g", "api_key")],
    ]);
    let identities = identities(", plan: premium, tenant: acme");
    let claims = claims(&identities);
    let request = Request {
        identities: &identities,
        claims: Some(&claims),
        ..request("")
    };
    let check = |part: DescribedPart, expected: &str| {
        assert_eq!(describe_part(&split, &request, part), expected);
    };
    let (without, only) = ("a=POST\nd=x\ng=acme-1", "b=POST c=u7\ne=premium\nf=acme");
    check(DescribedPart::WithoutToken, without);
    check(DescribedPart::OnlyToken, only);
    check(
        DescribedPart::All,
        "a=POST\nb=POST c=u7\nd=x\ne=premium\nf=acme\ng=acme-1",
    );
    assert!(split.needs_token());
    assert!(!Recipes::default().needs_token());
    let none = describe_part(&Recipes::default(), &request, DescribedPart::OnlyToken);
    assert_eq!(none, "");
}

#[test]
fn the_last_of_all_recipes_can_need_a_token() {
    let mut list = vec![Recipe::new([("path", Source::Path)]); MAX_RECIPES - 1];
    list.push(Recipe::new([("plan", Source::Plan)]));
    let recipes = Recipes::new(list).expect("recipes");
    let identities = identities(", plan: premium");
    let request = Request {
        identities: &identities,
        ..request("")
    };
    let only = describe_part(&recipes, &request, DescribedPart::OnlyToken);
    assert_eq!(only, "plan=premium");
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

/// The descriptors of a request with this query, and with `x-api-key: a,b`.
fn describe_query(list: &Recipes, query: &str) -> Result<String, AmbiguousValue> {
    let uri = format!("/?{query}");
    let request = Request {
        uri: Some(&uri),
        headers: &ApiKey("a,b"),
        ..request("")
    };
    let mut values = Values::default();
    list.read(&request, &mut values)?;
    Ok(describe(list, &request).replace('\n', " | "))
}

#[test]
fn lists_make_a_descriptor_for_each_combination() {
    let list = recipes(&[
        &[
            ("k", "header:x-api-key each"),
            ("u", "query:u each"),
            ("again", "header:x-api-key each"),
        ],
        &[("u", "query:u each")],
    ]);
    let check = |query: &str, expected: &str| {
        assert_eq!(describe_query(&list, query).as_deref(), Ok(expected));
    };
    check("u=1", "k=a u=1 again=a | k=b u=1 again=b | u=1");
    check(
        "u=1&u=2",
        "k=a u=1 again=a | k=b u=1 again=b | k=a u=2 again=a | k=b u=2 again=b | u=1 | u=2",
    );
    check("v=1", "");
    let four = describe_query(&list, "u=1&u=2&u=3&u=4").expect("eight combinations");
    assert_eq!(four.matches("k=").count(), 8);
    assert_eq!(
        describe_query(&list, "u=1&u=2&u=3&u=4&u=5"),
        Err(AmbiguousValue::TooManyCombinations)
    );
}

#[test]
fn values_of_one_name_that_differ_are_ambiguous() {
    let check = |source: &str, query: &str, expected: Result<&str, &str>| {
        let list = recipes(&[&[("u", source)]]);
        let found = describe_query(&list, query).map_err(|fault| fault.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    };
    check("query:u", "u=1&u=1&v=2", Ok("u=1"));
    check("query:u", "u=1&u=2", Err("the query parameters `u` differ"));
    check("query:u first", "u=1&u=2", Ok("u=1"));
    check("query:u last", "u=1&u=2", Ok("u=2"));
    check("query:u each", "u=1&u=2&u=1", Ok("u=1 | u=2"));
    let many = "u=1&u=2&u=3&u=4&u=5&u=6&u=7&u=8&u=9";
    let fault = "the query parameters `u` have more than 8 values";
    check("query:u each", many, Err(fault));
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
        "header:x-api-key first",
        "header:x-api-key last",
        "header:x-api-key each",
        "cookie:Session first",
        "cookie:Session each",
        "query:user id last",
        "query:user id each",
        "path without_last_slash",
        "method",
        "path",
        "host",
        "query:user id",
        "client_address",
        "client_address ipv4/24",
        "client_address ipv6/56",
        "client_address ipv4/0 ipv6/128",
        "constant:a:b",
        "cookie:Session",
        "path_segment:255",
        "route",
        "certificate",
        "claim:sub",
        "claim:https://shop.example/plan",
        "claim:/org/name",
        "api_key",
        "plan",
        "tenant",
        "label:asn",
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
    check("", "`` is not a source; write client_address, ");
    check("Path", "`Path` is not a source");
    check("path x", "`path x` is not a source");
    check("body:x", "`body:x` is not a source");
    check("header:", "`header:` needs a text after the colon");
    check("header:x(y", "`x(y` is not a valid header name");
    check(
        "header:x y",
        "`y` does not say which values count; write first, last or each",
    );
    check("cookie:x y", "`y` does not say which values count");
    check("query: each", "`query:` needs a text after the colon");
    check("path with_slash", "`path with_slash` is not a source");
    check("constant:", "`constant:` needs a text after the colon");
    check("cookie:", "`cookie:` needs a text after the colon");
    check("cookie:a;b", "`a;b` is not a valid cookie name");
    check("label:", "`label:` needs a text after the colon");
    check("claim:", "the name of a claim is missing; write a name");
    check("claim:/~", "`/~` is not a JSON pointer");
    check("api_key:x", "`api_key:x` is not a source");
    for number in ["", "0", "256", "-1", "+1", "x"] {
        let expected = format!("`{number}` is not the number of a path segment; write 1 to 255");
        check(&format!("path_segment:{number}"), &expected);
    }
    for prefixes in [
        "ipv4",
        "ipv4/33",
        "ipv6/129",
        "ipv4/x",
        "ipv5/1",
        "ipv4/1 ipv4/2",
        " ",
    ] {
        check(
            &format!("client_address {prefixes}"),
            "is not a list of prefixes",
        );
    }
}

#[test]
fn sources_that_the_client_chooses_are_known() {
    let check = |text: &str, expected: bool| {
        let source: Source = text.parse().expect(text);
        assert_eq!(source.is_chosen_by_client(), expected, "{text}");
    };
    for text in [
        "header:x-user",
        "cookie:id",
        "query:user",
        "query:user first",
        "host",
    ] {
        check(text, true);
    }
    for text in [
        "client_address",
        "claim:sub",
        "api_key",
        "path",
        "certificate",
        "plan",
    ] {
        check(text, false);
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
