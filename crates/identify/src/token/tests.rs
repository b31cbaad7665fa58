use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData as _};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;

use super::*;
use crate::{HeaderText, Identities};

/// A time in 2026.
const NOW_S: u64 = 1_794_000_000;

const SECRET: &[u8] = b"a secret that only tests share..";

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A private key with its public part in both forms.
struct SigningKey {
    algorithm: &'static str,
    public_pem: String,
    /// The fields that a JWK has besides `kid`.
    jwk: Value,
    sign: Sign,
}

/// A request with one header.
struct OneHeader(&'static str, String);

// === impl SigningKey ===

impl SigningKey {
    fn hs256() -> Self {
        Self {
            algorithm: "HS256",
            public_pem: String::new(),
            jwk: json!({ "kty": "oct", "k": encode(SECRET) }),
            sign: Box::new(|message| hmac_sha256(SECRET, message)),
        }
    }

    fn rs256() -> Self {
        let private = include_bytes!("../../tests/fixtures/rsa_2048_private.pem");
        let private = PrivatePkcs8KeyDer::from_pem_slice(private).expect("a key");
        let key = RsaKeyPair::from_pkcs8(private.secret_pkcs8_der()).expect("a key");
        let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
        let (n, e) = (encode(&public.n), encode(&public.e));
        Self {
            algorithm: "RS256",
            public_pem: include_str!("../../tests/fixtures/rsa_2048_public.pem").to_owned(),
            jwk: json!({ "kty": "RSA", "n": n, "e": e }),
            sign: Box::new(move |message| {
                let mut signature = vec![0; key.public().modulus_len()];
                let random = SystemRandom::new();
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .expect("a signature");
                signature
            }),
        }
    }

    fn es256() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pair.serialized_der(), &random);
        let key = key.expect("a key");
        let (x, y) = pair.der_bytes()[1..].split_at(32);
        Self {
            algorithm: "ES256",
            public_pem: pair.public_key_pem(),
            jwk: json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) }),
            sign: Box::new(move |message| {
                let signature = key.sign(&random, message).expect("a signature");
                signature.as_ref().to_vec()
            }),
        }
    }

    fn eddsa() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pair.serialized_der());
        let key = key.expect("a key");
        Self {
            algorithm: "EdDSA",
            public_pem: pair.public_key_pem(),
            jwk: json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.der_bytes()) }),
            sign: Box::new(move |message| key.sign(message).as_ref().to_vec()),
        }
    }

    fn all() -> [Self; 4] {
        [Self::hs256(), Self::rs256(), Self::es256(), Self::eddsa()]
    }

    /// Signs a token with the key's own algorithm in its header.
    fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.algorithm }), claims)
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let header = encode(header.to_string().as_bytes());
        let claims = encode(claims.to_string().as_bytes());
        let message = format!("{header}.{claims}");
        let signature = encode(&(self.sign)(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// Its JWK with an id.
    fn jwk(&self, id: &str) -> Value {
        let mut jwk = self.jwk.clone();
        jwk["kid"] = id.into();
        jwk
    }

    /// Its key alone, without an id.
    fn keys(&self) -> TokenKeys {
        key_set(std::slice::from_ref(&self.jwk)).expect("keys")
    }
}

// === impl OneHeader ===

impl Headers for OneHeader {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        (name == self.0).then(|| self.1.as_str().into())
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn hmac_sha256(secret: &[u8], message: &[u8]) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    ring::hmac::sign(&key, message).as_ref().to_vec()
}

fn key_set(keys: &[Value]) -> Result<TokenKeys, TokenKeyFault> {
    TokenKeys::from_jwks(json!({ "keys": keys }).to_string().as_bytes())
}

/// Settings that accept any issuer and audience.
fn any_names() -> TokenSettings {
    TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any)
}

fn named(names: &[&str]) -> AcceptedNames {
    AcceptedNames::Named(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Verifies a token at [`NOW_S`] and returns its subject.
fn subject(verifier: &TokenVerifier, token: &str) -> Result<String, TokenFault> {
    let claims = verify(verifier, token, NOW_S)?;
    let subject = claims.get(&ClaimPath::Name("sub".to_owned()));
    Ok(subject.expect("a subject").into_owned())
}

fn verify(verifier: &TokenVerifier, token: &str, now_s: u64) -> Result<Arc<Claims>, TokenFault> {
    let headers = OneHeader("authorization", format!("Bearer {token}"));
    match verifier.find(&headers, now_s) {
        TokenFound::Unverified(token) => {
            let verified = verifier.verify(&token, None, now_s);
            verified.map_err(|rejection| match rejection {
                TokenRejection::Bad(fault) => fault,
                other => panic!("{other}"),
            })
        }
        TokenFound::Verified(claims) => Ok(claims),
        TokenFound::Absent => panic!("no token"),
    }
}

fn good() -> Value {
    json!({ "sub": "user-7", "exp": NOW_S + 60 })
}

#[test]
fn every_algorithm_verifies_by_jwk_set_and_by_its_own_file() {
    for key in SigningKey::all() {
        let file = match key.algorithm {
            "HS256" => TokenKeys::from_secret(SECRET),
            _ => TokenKeys::from_pem(key.public_pem.as_bytes()),
        };
        let file = file.expect(key.algorithm);
        assert_eq!(file, key.keys(), "{}", key.algorithm);
        for keys in [file, key.keys()] {
            let verifier = TokenVerifier::new(any_names(), keys);
            let expected = Ok("user-7".to_owned());
            assert_eq!(subject(&verifier, &key.token(&good())), expected);
        }
    }
}

#[test]
fn a_signature_by_another_key_is_wrong() {
    for (key, other) in [
        (SigningKey::es256(), SigningKey::es256()),
        (SigningKey::eddsa(), SigningKey::eddsa()),
    ] {
        let verifier = TokenVerifier::new(any_names(), key.keys());
        let fault = subject(&verifier, &other.token(&good()));
        assert_eq!(fault, Err(TokenFault::BadSignature));
    }
    let verifier = TokenVerifier::new(any_names(), SigningKey::hs256().keys());
    let mut forger = SigningKey::hs256();
    forger.sign = Box::new(|message| hmac_sha256(b"another secret that nobody shares", message));
    let fault = subject(&verifier, &forger.token(&good()));
    assert_eq!(fault, Err(TokenFault::BadSignature));
}

#[test]
fn the_algorithm_follows_from_the_key_and_not_from_the_token() {
    for key in SigningKey::all() {
        let verifier = TokenVerifier::new(any_names(), key.keys());
        for other in ["HS256", "RS256", "ES256", "EdDSA", "HS512", "PS256"] {
            if other != key.algorithm {
                let token = key.token_with(&json!({ "alg": other }), &good());
                let fault = subject(&verifier, &token);
                assert_eq!(fault, Err(TokenFault::WrongAlgorithm), "{other}");
            }
        }
    }
}

/// The classic forgery: the attacker signs by HS256 with the public key, which everybody knows, as the secret.
#[test]
fn a_public_key_is_never_a_secret() {
    let key = SigningKey::rs256();
    let der = pem_content(&key.public_pem);
    for secret in [key.public_pem.clone().into_bytes(), der] {
        let mut forger = SigningKey::hs256();
        forger.sign = Box::new(move |message| hmac_sha256(&secret, message));
        let keys = key_set(&[key.jwk("a")]).expect("keys");
        let verifier = TokenVerifier::new(any_names(), keys);
        let plain = forger.token(&good());
        let named = forger.token_with(&json!({ "alg": "HS256", "kid": "a" }), &good());
        for token in [plain, named] {
            let fault = subject(&verifier, &token);
            assert_eq!(fault, Err(TokenFault::WrongAlgorithm));
        }
    }
}

fn pem_content(pem: &str) -> Vec<u8> {
    let key = rustls_pki_types::SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes());
    key.expect("a key").to_vec()
}

#[test]
fn an_unsigned_token_is_rejected() {
    let claims = encode(good().to_string().as_bytes());
    for key in SigningKey::all() {
        let verifier = TokenVerifier::new(any_names(), key.keys());
        for algorithm in ["none", "None", "NONE", ""] {
            let header = encode(json!({ "alg": algorithm }).to_string().as_bytes());
            let fault = subject(&verifier, &format!("{header}.{claims}."));
            assert_eq!(fault, Err(TokenFault::Malformed));
        }
        let header = encode(json!({ "alg": key.algorithm }).to_string().as_bytes());
        let fault = subject(&verifier, &format!("{header}.{claims}."));
        assert_eq!(fault, Err(TokenFault::BadSignature));
    }
}

#[test]
fn a_named_key_is_the_only_one_tried() {
    let (first, second) = (SigningKey::es256(), SigningKey::eddsa());
    let keys = key_set(&[first.jwk("first"), second.jwk("second")]).expect("keys");
    let verifier = TokenVerifier::new(any_names(), keys);
    let check = |key: &SigningKey, id: Option<&str>, expected: Result<&str, TokenFault>| {
        let mut header = json!({ "alg": key.algorithm });
        if let Some(id) = id {
            header["kid"] = id.into();
        }
        let token = key.token_with(&header, &good());
        assert_eq!(
            subject(&verifier, &token),
            expected.map(str::to_owned),
            "{id:?}"
        );
    };
    check(&first, Some("first"), Ok("user-7"));
    check(&second, Some("second"), Ok("user-7"));
    check(&first, Some("second"), Err(TokenFault::WrongAlgorithm));
    check(&first, None, Ok("user-7"));
    check(
        &SigningKey::es256(),
        Some("first"),
        Err(TokenFault::BadSignature),
    );
    assert_eq!(verifier.n_unknown_keys(), 0);
    check(&first, Some("third"), Err(TokenFault::UnknownKey));
    check(&first, Some(""), Err(TokenFault::UnknownKey));
    assert_eq!(verifier.n_unknown_keys(), 2);
}

#[test]
fn one_id_can_name_a_key_of_each_algorithm() {
    let (first, second) = (SigningKey::es256(), SigningKey::eddsa());
    let keys = key_set(&[first.jwk("a"), second.jwk("a")]).expect("keys");
    let verifier = TokenVerifier::new(any_names(), keys);
    for key in [&first, &second] {
        let header = json!({ "alg": key.algorithm, "kid": "a" });
        let token = key.token_with(&header, &good());
        assert_eq!(subject(&verifier, &token), Ok("user-7".to_owned()));
    }
}

#[test]
fn without_keys_every_key_is_unknown() {
    let verifier = TokenVerifier::new(any_names(), TokenKeys::none());
    for key in SigningKey::all() {
        let fault = subject(&verifier, &key.token(&good()));
        assert_eq!(fault, Err(TokenFault::UnknownKey));
    }
    assert_eq!(verifier.n_unknown_keys(), 4);
}

#[test]
fn tokens_with_unknown_keys_are_counted_over_a_change_of_keys() {
    let signer = SigningKey::hs256();
    let old = TokenVerifier::new(any_names(), key_set(&[signer.jwk("a")]).expect("keys"));
    let new = old.replaced_by(any_names(), key_set(&[signer.jwk("b")]).expect("keys"));
    let token = signer.token_with(&json!({ "alg": "HS256", "kid": "c" }), &good());
    for verifier in [&old, &new] {
        let verified = verify(verifier, &token, NOW_S);
        assert_eq!(verified.err(), Some(TokenFault::UnknownKey));
    }
    assert_eq!((old.n_unknown_keys(), new.n_unknown_keys()), (2, 2));
}

#[test]
fn keys_without_ids_are_tried_whatever_the_token_names() {
    let (old, new) = (SigningKey::es256(), SigningKey::es256());
    let pem = format!("{}{}", old.public_pem, new.public_pem);
    let keys = TokenKeys::from_pem(pem.as_bytes()).expect("keys");
    let verifier = TokenVerifier::new(any_names(), keys);
    for key in [&old, &new] {
        let header = json!({ "alg": "ES256", "kid": "whatever" });
        let token = key.token_with(&header, &good());
        assert_eq!(subject(&verifier, &token), Ok("user-7".to_owned()));
    }
}

#[test]
fn a_token_without_a_key_name_costs_at_most_four_checks() {
    let keys: Vec<SigningKey> = (0..5).map(|_| SigningKey::eddsa()).collect();
    let jwks: Vec<Value> = keys.iter().map(|key| key.jwk.clone()).collect();
    let token = keys[3].token(&good());
    let check = |n_keys: usize, expected: Result<&str, TokenFault>| {
        let verifier = TokenVerifier::new(any_names(), key_set(&jwks[..n_keys]).expect("keys"));
        assert_eq!(subject(&verifier, &token), expected.map(str::to_owned));
    };
    check(4, Ok("user-7"));
    check(5, Err(TokenFault::KeyNotNamed));
}

#[test]
fn times_are_checked_with_leeway() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let check = |claims: Value, expected: Result<&str, TokenFault>| {
        let text = claims.to_string();
        let subject = subject(&verifier, &key.token(&claims));
        assert_eq!(subject, expected.map(str::to_owned), "{text}");
    };
    let check_exp = |exp: Value, expected| check(json!({ "sub": "a", "exp": exp }), expected);
    check_exp(json!(NOW_S - 29), Ok("a"));
    check_exp(json!(NOW_S - 30), Err(TokenFault::Expired));
    check_exp(json!(0), Err(TokenFault::Expired));
    check_exp(json!(u64::MAX), Ok("a"));
    check_exp(json!(1.8e9), Ok("a"));
    check_exp(json!(1.5e9), Err(TokenFault::Expired));
    check_exp(json!("1800000000"), Err(TokenFault::NoExpiry));
    check_exp(json!(-1), Err(TokenFault::NoExpiry));
    check_exp(json!(1e300), Err(TokenFault::NoExpiry));
    check_exp(Value::Null, Err(TokenFault::NoExpiry));
    check(json!({ "sub": "a" }), Err(TokenFault::NoExpiry));
    let check_nbf = |nbf: Value, expected| {
        check(
            json!({ "sub": "a", "exp": NOW_S + 60, "nbf": nbf }),
            expected,
        );
    };
    check_nbf(json!(NOW_S), Ok("a"));
    check_nbf(json!(NOW_S + 30), Ok("a"));
    check_nbf(json!(-5), Ok("a"));
    check_nbf(json!(NOW_S + 31), Err(TokenFault::NotYetValid));
    check_nbf(json!(u64::MAX), Err(TokenFault::NotYetValid));
    check_nbf(json!("soon"), Err(TokenFault::NotYetValid));
    check_nbf(Value::Null, Err(TokenFault::NotYetValid));
}

#[test]
fn the_leeway_is_a_setting() {
    let key = SigningKey::hs256();
    let settings = TokenSettings {
        leeway: Duration::ZERO,
        ..any_names()
    };
    let verifier = TokenVerifier::new(settings, key.keys());
    let token = key.token(&json!({ "sub": "a", "exp": NOW_S }));
    assert_eq!(verify(&verifier, &token, NOW_S), Err(TokenFault::Expired));
    assert!(verify(&verifier, &token, NOW_S - 1).is_ok());
}

#[test]
fn issuer_and_audience_are_named_or_any() {
    let key = SigningKey::hs256();
    let check = |settings: TokenSettings, names: Value, expected: Result<&str, TokenFault>| {
        let mut claims = good();
        for (name, value) in names.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        let verifier = TokenVerifier::new(settings, key.keys());
        let subject = subject(&verifier, &key.token(&claims));
        assert_eq!(subject, expected.map(str::to_owned), "{names}");
    };
    let issuers = || TokenSettings::new(named(&["https://a", "https://b"]), AcceptedNames::Any);
    check(issuers(), json!({ "iss": "https://a" }), Ok("user-7"));
    check(
        issuers(),
        json!({ "iss": "https://b", "aud": "x" }),
        Ok("user-7"),
    );
    let wrong = Err(TokenFault::WrongIssuer);
    check(issuers(), json!({ "iss": "https://a/" }), wrong);
    check(issuers(), json!({ "iss": 7 }), wrong);
    check(issuers(), json!({}), wrong);
    let audiences = || TokenSettings::new(AcceptedNames::Any, named(&["api"]));
    check(audiences(), json!({ "aud": "api" }), Ok("user-7"));
    check(
        audiences(),
        json!({ "aud": ["web", "api"], "iss": "x" }),
        Ok("user-7"),
    );
    let wrong = Err(TokenFault::WrongAudience);
    check(audiences(), json!({ "aud": "web" }), wrong);
    check(audiences(), json!({ "aud": ["web"] }), wrong);
    check(audiences(), json!({ "aud": [] }), wrong);
    check(audiences(), json!({ "aud": 7 }), wrong);
    check(audiences(), json!({}), wrong);
    check(any_names(), json!({}), Ok("user-7"));
    check(any_names(), json!({ "iss": ["x"], "aud": 7 }), Ok("user-7"));
    let nobody = TokenSettings::new(named(&[]), AcceptedNames::Any);
    check(nobody, json!({ "iss": "x" }), Err(TokenFault::WrongIssuer));
}

#[test]
fn tokens_have_at_most_8_kib() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let token = |n_padding: usize| {
        let claims = json!({ "sub": "a", "exp": NOW_S + 60, "x": "y".repeat(n_padding) });
        key.token(&claims)
    };
    let longest = (6_000..7_000)
        .map(token)
        .find(|token| token.len() >= MAX_TOKEN_BYTES);
    let longest = longest.expect("a token");
    assert_eq!(longest.len(), MAX_TOKEN_BYTES);
    assert_eq!(subject(&verifier, &longest), Ok("a".to_owned()));
    let fault = subject(&verifier, &format!("{longest}x"));
    assert_eq!(fault, Err(TokenFault::TooLong));
    let fault = subject(&verifier, &"x".repeat(1 << 20));
    assert_eq!(fault, Err(TokenFault::TooLong));
}

#[test]
fn garbage_is_malformed() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let good = key.token(&good());
    let (message, signature) = good.rsplit_once('.').expect("a signature");
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let nested_header = encode(format!(r#"{{"alg":"HS256","x":{nested}}}"#).as_bytes());
    for garbage in [
        "x",
        ".",
        "..",
        "...",
        "a.b.c",
        "é.é.é",
        "e30.e30.",
        "bnVsbA.bnVsbA.bnVsbA",
        &good.replace('.', ","),
        &format!("{good}."),
        &format!(".{good}"),
        &format!("{good}="),
        &format!("{good} "),
        &format!("{message}.{signature},{signature}"),
        &format!("{nested_header}.e30.{signature}"),
    ] {
        let found = subject(&verifier, garbage);
        // A blank around the token is not a part of it.
        let expected = if garbage.trim() == good {
            Ok("user-7".to_owned())
        } else {
            Err(TokenFault::Malformed)
        };
        assert_eq!(found, expected, "{garbage}");
    }
    // The claims are signed, and are not JSON, not an object, or have a field twice.
    for claims in [
        "",
        "null",
        "[]",
        "{",
        "\"x\"",
        r#"{"exp":1,"exp":2}"#,
        &nested,
    ] {
        let message = format!(
            "{}.{}",
            encode(br#"{"alg":"HS256"}"#),
            encode(claims.as_bytes())
        );
        let signature = encode(&(key.sign)(message.as_bytes()));
        let fault = subject(&verifier, &format!("{message}.{signature}"));
        assert_eq!(fault, Err(TokenFault::Malformed), "{claims}");
    }
}

#[test]
fn critical_extensions_are_not_ignored() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let header = json!({ "alg": "HS256", "crit": ["b64"], "b64": false });
    let fault = subject(&verifier, &key.token_with(&header, &good()));
    assert_eq!(fault, Err(TokenFault::UnsupportedExtension));
}

#[test]
fn keys_inside_the_token_are_not_used() {
    let (key, forger) = (SigningKey::es256(), SigningKey::es256());
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let header = json!({ "alg": "ES256", "jwk": forger.jwk, "jku": "https://evil.example/keys" });
    let fault = subject(&verifier, &forger.token_with(&header, &good()));
    assert_eq!(fault, Err(TokenFault::BadSignature));
}

#[test]
fn a_verified_token_is_remembered_until_it_expires() {
    let key = SigningKey::es256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let token = key.token(&good());
    let headers = OneHeader("authorization", format!("Bearer {token}"));
    let is_remembered = |verifier: &TokenVerifier, now_s: u64| {
        matches!(verifier.find(&headers, now_s), TokenFound::Verified(_))
    };
    assert!(!is_remembered(&verifier, NOW_S));
    let claims = verify(&verifier, &token, NOW_S).expect("claims");
    let TokenFound::Verified(again) = verifier.find(&headers, NOW_S) else {
        panic!("the token is not remembered")
    };
    assert!(Arc::ptr_eq(&claims, &again));
    let end_s = NOW_S + 60 + 30;
    assert!(is_remembered(&verifier, end_s - 1));
    assert!(!is_remembered(&verifier, end_s));
    assert_eq!(verify(&verifier, &token, end_s), Err(TokenFault::Expired));

    // Other keys, another memory.
    let reloaded = TokenVerifier::new(any_names(), SigningKey::es256().keys());
    assert!(!is_remembered(&reloaded, NOW_S));
    let fault = verify(&reloaded, &token, NOW_S);
    assert_eq!(fault, Err(TokenFault::BadSignature));
}

#[test]
fn a_bad_token_is_not_remembered() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let good = key.token(&good());
    subject(&verifier, &good).expect("a good token");
    // The claims of a token that is remembered, with another signature.
    let (message, _) = good.rsplit_once('.').expect("a signature");
    let forged = format!("{message}.{}", encode(&[0; 32]));
    for _ in 0..2 {
        let fault = subject(&verifier, &forged);
        assert_eq!(fault, Err(TokenFault::BadSignature));
    }
}

#[test]
fn tokens_are_found_where_the_settings_say() {
    let key = SigningKey::hs256();
    let token = key.token(&good());
    let check = |place: &str, header: &'static str, value: String, is_found: bool| {
        let settings = TokenSettings {
            place: place.parse().expect(place),
            ..any_names()
        };
        let verifier = TokenVerifier::new(settings, key.keys());
        let identities = Identities::default().with_tokens(Arc::new(verifier));
        let headers = OneHeader(header, value);
        let claims = identities.claims(&headers, None, MissingToken::Deny, NOW_S);
        match claims {
            Err(TokenRejection::Missing) => assert!(!is_found, "{place}"),
            claims => assert!(is_found && claims.is_ok(), "{place}: {claims:?}"),
        }
    };
    let bearer = || format!("Bearer {token}");
    check("bearer", "authorization", bearer(), true);
    check("bearer", "authorization", format!("Basic {token}"), false);
    check("bearer", "authorization", "Bearer ".to_owned(), false);
    check("bearer", "x-token", bearer(), false);
    check("header:X-Token", "x-token", token.clone(), true);
    check("header:X-Token", "x-token", String::new(), false);
    check(
        "cookie:session",
        "cookie",
        format!("a=b; session={token}"),
        true,
    );
    check(
        "cookie:session",
        "cookie",
        format!("Session={token}"),
        false,
    );
    let nothing = OneHeader("authorization", bearer());
    let found = Identities::none().find_token(&nothing, NOW_S);
    assert!(matches!(found, TokenFound::Absent));
}

#[test]
fn cookies_that_differ_hold_no_token() {
    let signer = SigningKey::hs256();
    let settings = TokenSettings {
        place: TokenPlace::Cookie("t".to_owned()),
        ..any_names()
    };
    let verifier = TokenVerifier::new(settings, signer.keys());
    let identities = Identities::default().with_tokens(Arc::new(verifier));
    let token = signer.token(&good());
    let claims = |cookies: String| {
        let headers = OneHeader("cookie", cookies);
        identities.claims(&headers, None, MissingToken::Deny, NOW_S)
    };
    assert!(claims(format!("t={token}; t={token}")).is_ok());
    for cookies in [format!("t={token}; t=x"), format!("t=; t={token}")] {
        let rejection = claims(cookies).expect_err("two tokens");
        assert_eq!(rejection, TokenRejection::Bad(TokenFault::Malformed));
    }
}

#[test]
fn a_debug_print_shows_neither_token_nor_secret() {
    let key = SigningKey::hs256();
    let verifier = TokenVerifier::new(any_names(), key.keys());
    let token = key.token(&good());
    let headers = OneHeader("authorization", format!("Bearer {token}"));
    let found = verifier.find(&headers, NOW_S);
    subject(&verifier, &token).expect("a good token");
    let secret = format!("{SECRET:?}");
    let secret = secret.trim_matches(['[', ']']);
    for printed in [format!("{found:?}"), format!("{verifier:?}")] {
        assert!(
            !printed.contains(&token[..20]) && !printed.contains(secret),
            "{printed}"
        );
    }
}

#[test]
fn faulty_keys_are_named() {
    let check = |keys: &[Value], expected: TokenKeyFault| {
        assert_eq!(key_set(keys), Err(expected), "{keys:?}");
    };
    let (secret, public) = (SigningKey::hs256(), SigningKey::es256());
    check(
        &[secret.jwk("a"), public.jwk("b")],
        TokenKeyFault::MixedKinds,
    );
    check(&[], TokenKeyFault::NoKeys { given: 0 });
    let id = "a".to_owned();
    check(
        &[public.jwk("a"), SigningKey::es256().jwk("a")],
        TokenKeyFault::DuplicateId { id },
    );
    let many = vec![public.jwk.clone(); 101];
    check(
        &many,
        TokenKeyFault::TooManyKeys {
            given: 101,
            most: 100,
        },
    );
    let short = json!({ "kty": "oct", "k": encode(&SECRET[1..]) });
    check(&[short], TokenKeyFault::ShortSecret { given: 31 });
    let weak = json!({ "kty": "RSA", "n": encode(&[0xff; 128]), "e": "AQAB" });
    check(&[weak], TokenKeyFault::RsaBits { bits: 1024 });
    for text in ["", "[]", "{}", "{\"keys\": 7}", "\u{feff}{\"keys\": []}"] {
        let fault = TokenKeys::from_jwks(text.as_bytes());
        assert_eq!(fault, Err(TokenKeyFault::NotAKeySet), "{text}");
    }
    let large = vec![b' '; (1 << 20) + 1];
    let given = large.len();
    for fault in [TokenKeys::from_jwks(&large), TokenKeys::from_pem(&large)] {
        assert_eq!(fault, Err(TokenKeyFault::TooLarge { given }));
    }
    let fault = TokenKeys::from_secret(&SECRET[1..]);
    assert_eq!(fault, Err(TokenKeyFault::ShortSecret { given: 31 }));
}

#[test]
fn keys_for_other_uses_are_left_out() {
    let key = SigningKey::rs256();
    let with = |field: &str, value: &str| {
        let mut jwk = key.jwk("other");
        jwk[field] = value.into();
        jwk
    };
    for other in [
        with("use", "enc"),
        with("alg", "RS512"),
        with("alg", "RSA-OAEP"),
        with("alg", "unheard-of"),
        with("kty", "AKP"),
        with("n", "not base64!"),
        json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" }),
        json!({ "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": "AA" }),
        json!({ "kty": 7 }),
        json!("a key"),
    ] {
        let fault = key_set(std::slice::from_ref(&other));
        assert_eq!(fault, Err(TokenKeyFault::NoKeys { given: 1 }), "{other}");
        let keys = key_set(&[other, key.jwk("a")]).expect("keys");
        assert_eq!(keys.len(), 1);
    }
    let mut good = key.jwk("a");
    good["use"] = "sig".into();
    good["alg"] = "RS256".into();
    assert_eq!(key_set(&[good]).expect("keys").len(), 1);
}

/// A provider that publishes one key too many must not lock everybody out.
#[test]
fn a_key_that_cannot_be_used_does_not_spoil_its_set() {
    let key = SigningKey::rs256();
    let claims = good();
    let check = |mut other: Value, good: &SigningKey, expected: Option<TokenKeyFault>| {
        other["kid"] = "other".into();
        let keys = key_set(&[other, good.jwk("a")]).expect("keys");
        let left_out = expected.map(|fault| LeftOutKey {
            id: Some("other".to_owned()),
            fault,
        });
        assert_eq!(keys.left_out(), left_out.as_slice());
        assert_eq!(keys.len(), 1);
        let verifier = TokenVerifier::new(any_names(), keys);
        let token = good.token_with(&json!({ "alg": good.algorithm, "kid": "a" }), &claims);
        assert!(verify(&verifier, &token, NOW_S).is_ok());
    };
    let weak = json!({ "kty": "RSA", "n": encode(&[0xff; 128]), "e": "AQAB" });
    check(weak, &key, Some(TokenKeyFault::RsaBits { bits: 1024 }));
    let short = json!({ "kty": "oct", "k": encode(&SECRET[1..]) });
    let fault = TokenKeyFault::ShortSecret { given: 31 };
    check(short, &SigningKey::hs256(), Some(fault));
    let curve = json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" });
    check(curve, &key, Some(TokenKeyFault::UnsupportedKey));
    let mut encryption = key.jwk("a");
    encryption["use"] = "enc".into();
    check(encryption, &key, None);
}

#[test]
fn a_secret_file_may_end_its_line() {
    let secret = TokenKeys::from_secret(SECRET).expect("a secret");
    for end in ["\n", "\r\n"] {
        let file = [SECRET, end.as_bytes()].concat();
        assert_eq!(TokenKeys::from_secret(&file), Ok(secret.clone()));
    }
    let file = [SECRET, b"\n\n"].concat();
    assert_ne!(TokenKeys::from_secret(&file), Ok(secret));
}

#[test]
fn a_pem_file_holds_public_keys_only() {
    let check = |pem: &str, expected: TokenKeyFault| {
        assert_eq!(TokenKeys::from_pem(pem.as_bytes()), Err(expected), "{pem}");
    };
    let weak = include_str!("../../tests/fixtures/rsa_1024_public.pem");
    check(weak, TokenKeyFault::RsaBits { bits: 1024 });
    let curve = include_str!("../../tests/fixtures/p384_public.pem");
    check(curve, TokenKeyFault::UnsupportedKey);
    let private = include_str!("../../tests/fixtures/rsa_2048_private.pem");
    let found = "a private key";
    check(private, TokenKeyFault::NotAPublicKey { found });
    let key = KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::default().self_signed(&key);
    let certificate = certificate.expect("a certificate").pem();
    let found = "a certificate";
    check(&certificate, TokenKeyFault::NotAPublicKey { found });
    check("", TokenKeyFault::NotPem);
    check("a key", TokenKeyFault::NotPem);
    let public = SigningKey::es256().public_pem;
    check(
        &public.replace("-----END", "----END"),
        TokenKeyFault::NotPem,
    );
    check(
        &public.repeat(5),
        TokenKeyFault::TooManyKeys { given: 5, most: 4 },
    );
}

/// A DER reader must not panic on damaged keys.
#[test]
fn damaged_keys_are_rejected() {
    for key in [
        SigningKey::rs256(),
        SigningKey::es256(),
        SigningKey::eddsa(),
    ] {
        let der = pem_content(&key.public_pem);
        assert!(spki::read(&der).is_some());
        for end in 0..der.len() {
            assert_eq!(spki::read(&der[..end]), None);
        }
        assert_eq!(spki::read(&[der.as_slice(), &[0]].concat()), None);
    }
}

proptest! {
    /// No change of a single character leaves a token valid.
    #[test]
    fn a_changed_token_is_rejected(place in any::<prop::sample::Index>(), byte in 0x21_u8..0x7f) {
        let key = SigningKey::hs256();
        let verifier = TokenVerifier::new(any_names(), key.keys());
        let mut token = key.token(&good()).into_bytes();
        let place = place.index(token.len());
        prop_assume!(token[place] != byte);
        token[place] = byte;
        let token = String::from_utf8(token).expect("text");
        prop_assert!(subject(&verifier, &token).is_err());
    }

    /// Whatever the text, verifying it ends without a panic, and it is not accepted.
    #[test]
    fn any_text_is_rejected(token in "\\PC{1,200}") {
        let verifier = TokenVerifier::new(any_names(), SigningKey::hs256().keys());
        let headers = OneHeader("authorization", format!("Bearer {token}"));
        if let TokenFound::Unverified(token) = verifier.find(&headers, NOW_S) {
            prop_assert!(verifier.verify(&token, None, NOW_S).is_err());
        }
    }
}

/// A client with tokens of another kind (opaque ones, or of a key that is not known yet) must not keep the others behind its address from
/// being verified.
#[test]
fn tokens_that_cost_no_check_are_not_counted() {
    let signer = SigningKey::es256();
    let verifier = TokenVerifier::new(any_names(), key_set(&[signer.jwk("a")]).expect("keys"));
    let signed = |header: Value| signer.token_with(&header, &good());
    let unknown = signed(json!({ "alg": "ES256", "kid": "b" }));
    let uncounted = [
        ("an-opaque-token", TokenFault::Malformed),
        (unknown.as_str(), TokenFault::UnknownKey),
    ];
    let check = || {
        for (token, fault) in uncounted {
            assert_eq!(verify(&verifier, token, NOW_S).err(), Some(fault));
        }
    };
    for _ in 0..1_000 {
        check();
    }
    let known = json!({ "alg": "ES256", "kid": "a" });
    assert!(verify(&verifier, &signed(known.clone()), NOW_S).is_ok());
    // Nor are they affected by forged ones.
    let forged = SigningKey::es256().token_with(&known, &good());
    let headers = OneHeader("authorization", format!("Bearer {forged}"));
    let TokenFound::Unverified(forged) = verifier.find(&headers, NOW_S) else {
        panic!("it is not good");
    };
    let is_checked = |_: &_| {
        verifier.verify(&forged, None, NOW_S).err() != Some(TokenRejection::TooManyFailures)
    };
    assert!((0..1_000).take_while(is_checked).count() < 1_000);
    check();
}

/// A bad token that counts as none is denied where one is demanded.
#[test]
fn missing_and_bad_tokens_are_treated_as_the_settings_say() {
    use {BadToken as Bad, MissingToken as Missing};
    let key = SigningKey::hs256();
    let check = |bad_token, missing, token: &str, expected: Result<bool, TokenRejection>| {
        let settings = TokenSettings {
            bad_token,
            ..any_names()
        };
        let verifier = Arc::new(TokenVerifier::new(settings, key.keys()));
        let identities = Identities::default().with_tokens(verifier);
        let headers = OneHeader("authorization", token.to_owned());
        let claims = identities.claims(&headers, None, missing, NOW_S);
        assert_eq!(claims.map(|it| it.is_some()), expected, "{token}");
    };
    let good = format!("Bearer {}", key.token(&good()));
    let (none, bad) = ("", "Bearer x");
    let fault = || Err(TokenRejection::Bad(TokenFault::Malformed));
    for bad_token in [Bad::Deny, Bad::Anonymous] {
        check(bad_token, Missing::Anonymous, &good, Ok(true));
        check(bad_token, Missing::Deny, &good, Ok(true));
        check(bad_token, Missing::Anonymous, none, Ok(false));
        let missing = Err(TokenRejection::Missing);
        check(bad_token, Missing::Deny, none, missing);
        check(bad_token, Missing::Deny, bad, fault());
    }
    check(Bad::Deny, Missing::Anonymous, bad, fault());
    check(Bad::Anonymous, Missing::Anonymous, bad, Ok(false));
}
