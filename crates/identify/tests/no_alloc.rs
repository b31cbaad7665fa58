//! Finding the address of a client allocates nothing, whatever the header looks like; nor does an ordinary description.

use std::sync::Arc;

use allocation_counter::measure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_identify::{
    AcceptedNames, AddressHeader, ClientAddress, DescribedPart, Descriptors, Entries, HeaderText,
    Headers, Identities, LabelTable, MissingToken, Peer, Recipe, Recipes, Request, TokenKeys,
    TokenSettings, TokenVerifier, Values,
};

/// A token, and the header `x-user`.
struct TokenAndUser(String);

impl Headers for TokenAndUser {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        match name {
            "authorization" => Some(self.0.as_str().into()),
            "x-user" => Some("user-7".into()),
            _ => None,
        }
    }
}

fn token(secret: &[u8]) -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let claims = encode(br#"{"sub":"user-7","exp":2000000000}"#);
    let message = format!("{}.{claims}", encode(br#"{"alg":"HS256"}"#));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = encode(ring::hmac::sign(&key, message.as_bytes()).as_ref());
    format!("Bearer {message}.{signature}")
}

fn describe(recipes: &Recipes, identities: &Identities, headers: &TokenAndUser) {
    let claims = identities.claims(headers, None, MissingToken::Deny, 0);
    let claims = claims.expect("the token was verified before");
    let request = Request {
        method: Some("GET"),
        uri: Some("/posts/42?page=3"),
        host: Some("api.example"),
        client: Some([203, 0, 113, 7].into()),
        headers,
        identities,
        claims: claims.as_deref(),
        certificate: None,
        route: Some("posts"),
    };
    let (mut values, mut entries) = (Values::default(), Entries::default());
    recipes
        .read(&request, &mut values)
        .expect("no header has two meanings");
    let mut descriptors = Descriptors::new();
    recipes.describe(&values, DescribedPart::All, &mut entries, &mut descriptors);
    assert_eq!(descriptors.len(), recipes.list().len());
}

#[test]
fn an_ordinary_description_allocates_nothing() {
    let secret = [7; 32];
    let settings = TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any);
    let tokens = TokenVerifier::new(settings, TokenKeys::from_secret(&secret).unwrap());
    let labels = LabelTable::read(b"203.0.113.0/24,AS64500").unwrap();
    let identities = Identities::default()
        .with_tokens(Arc::new(tokens))
        .with_labels("asn", Arc::new(labels));
    let headers = TokenAndUser(token(&secret));
    let verified = identities.claims(&headers, None, MissingToken::Deny, 0);
    assert!(verified.is_ok());
    for sources in [
        &["client_address"][..],
        &["header:x-user"],
        &["claim:sub"],
        &["path_segment:2", "route", "label:asn"],
        &["query:page", "host", "method"],
    ] {
        let recipe = |source: &&str| Recipe::new([("key", source.parse().unwrap())]);
        let recipes = Recipes::new(sources.iter().map(recipe).collect()).unwrap();
        let allocated = measure(|| describe(&recipes, &identities, &headers));
        assert_eq!(allocated.count_total, 0, "{sources:?}");
    }
}

#[test]
fn finding_an_address_allocates_nothing() {
    let proxy = Peer::Address("127.0.0.1".parse().unwrap());
    let client = "203.0.113.7".parse().ok();
    let long = "::1, ".repeat(30);
    let x_forwarded_for = format!("6.6.6.6, 203.0.113.7, {long}127.0.0.1");
    let forwarded = "for=\"6, for=203.0.113.7;proto=https, for=\"[::1]:4711\"";
    for (header, line) in [
        (AddressHeader::XForwardedFor, x_forwarded_for.as_str()),
        (AddressHeader::Forwarded, forwarded),
        (AddressHeader::from("x-real-ip"), "::ffff:203.0.113.7"),
    ] {
        let config = ClientAddress {
            header,
            ..ClientAddress::default()
        };
        let allocated = measure(|| {
            assert_eq!(config.find(proxy, [line.as_bytes()]), client);
        });
        assert_eq!(allocated.count_total, 0, "{line}");
    }
}
