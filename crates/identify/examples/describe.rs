//! Describes one request over and over, for `tests/instructions.rs`: `describe address|header|default|token N`.

#![expect(clippy::unwrap_used, reason = "an example may panic")]

use std::env;
use std::hint::black_box;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_identify::{
    AcceptedNames, DescribedPart, Descriptors, Entries, HeaderText, Headers, Identities,
    MissingToken, Recipe, Recipes, Request, TokenKeys, TokenSettings, TokenVerifier, Values,
};

/// The headers `x-user` and `authorization`.
struct TwoHeaders(String);

impl Headers for TwoHeaders {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        match name {
            "x-user" => Some("user-1234567".into()),
            "authorization" => Some(self.0.as_str().into()),
            _ => None,
        }
    }
}

fn main() {
    let mut arguments = env::args().skip(1);
    let recipes = match arguments.next().unwrap().as_str() {
        "address" => recipe("remote_address", "client_address"),
        "header" => recipe("user", "header:x-user"),
        "token" => recipe("user", "claim:sub"),
        _ => Recipes::default(),
    };
    let times: u64 = arguments.next().unwrap().parse().unwrap();
    let secret = [7; 32];
    let headers = TwoHeaders(format!("Bearer {}", token(&secret)));
    let settings = TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any);
    let tokens = TokenVerifier::new(settings, TokenKeys::from_secret(&secret).unwrap());
    let identities = Identities::default().with_tokens(Arc::new(tokens));
    let verified = identities.claims(&headers, None, MissingToken::Deny, 0);
    assert!(verified.is_ok());
    let described = describe_repeatedly(&recipes, &identities, &headers, times);
    println!("{described} described");
}

#[inline(never)]
fn describe_repeatedly(
    recipes: &Recipes,
    identities: &Identities,
    headers: &TwoHeaders,
    times: u64,
) -> usize {
    (0..times)
        .map(|_| describe(black_box(recipes), identities, headers))
        .sum()
}

/// One request whose token, if the recipes need it, is known already.
fn describe(recipes: &Recipes, identities: &Identities, headers: &TwoHeaders) -> usize {
    let claims = if recipes.needs_token() {
        identities
            .claims(headers, None, MissingToken::Deny, 0)
            .unwrap()
    } else {
        None
    };
    let request = Request {
        method: Some("GET"),
        uri: Some("/posts/42?page=3"),
        host: Some("api.example"),
        client: Some([203, 0, 113, 7].into()),
        headers,
        identities,
        claims: claims.as_deref(),
        certificate: None,
        route: None,
    };
    let (mut values, mut entries) = (Values::default(), Entries::default());
    recipes
        .read(black_box(&request), &mut values)
        .expect("no header has two meanings");
    let mut descriptors = Descriptors::new();
    recipes.describe(&values, DescribedPart::All, &mut entries, &mut descriptors);
    usize::from(!black_box(&descriptors).is_empty())
}

fn recipe(key: &str, source: &str) -> Recipes {
    Recipes::new(vec![Recipe::new([(key, source.parse().unwrap())])]).unwrap()
}

/// A token as providers issue it, of 400 bytes.
fn token(secret: &[u8]) -> String {
    let claims = format!(
        r#"{{"sub":"user-1234567","exp":2000000000,"x":"{}"}}"#,
        "y".repeat(200)
    );
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let message = format!(
        "{}.{}",
        encode(br#"{"alg":"HS256"}"#),
        encode(claims.as_bytes())
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", encode(signature.as_ref()))
}
