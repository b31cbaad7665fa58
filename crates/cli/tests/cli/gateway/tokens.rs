//! Tokens of every algorithm, by keys in files, and files of keys that change under a gateway that runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData as _};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::identity::write_api_keys;
use super::reload::{RELOADED, replace};
use super::upstream::Upstream;
use super::{SECRET, ask, base64, signed_by, start, token};
use crate::program::scratch;
use crate::server::Server;

const RSA: &[u8] = include_bytes!("../../../../identify/tests/fixtures/rsa_2048_private.pem");
const RSA_PUBLIC: &str = include_str!("../../../../identify/tests/fixtures/rsa_2048_public.pem");

/// A key that signs tokens, and its public part in both forms.
struct SigningKey {
    algorithm: &'static str,
    pem: String,
    /// The fields of its JWK but `kid`.
    jwk: String,
    sign: Sign,
}

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

// === impl SigningKey ===

impl SigningKey {
    fn rs256() -> Self {
        let private = PrivatePkcs8KeyDer::from_pem_slice(RSA).unwrap();
        let key = RsaKeyPair::from_pkcs8(private.secret_pkcs8_der()).unwrap();
        let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
        let (n, e) = (base64(&public.n), base64(&public.e));
        Self {
            algorithm: "RS256",
            pem: RSA_PUBLIC.to_owned(),
            jwk: format!(r#""kty":"RSA","n":"{n}","e":"{e}""#),
            sign: Box::new(move |message| {
                let mut signature = vec![0; key.public().modulus_len()];
                let random = SystemRandom::new();
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }),
        }
    }

    fn es256() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pair.serialized_der(), &random).unwrap();
        let (x, y) = pair.der_bytes()[1..].split_at(32);
        let (x, y) = (base64(x), base64(y));
        Self {
            algorithm: "ES256",
            pem: pair.public_key_pem(),
            jwk: format!(r#""kty":"EC","crv":"P-256","x":"{x}","y":"{y}""#),
            sign: Box::new(move |message| key.sign(&random, message).unwrap().as_ref().to_vec()),
        }
    }

    fn eddsa() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pair.serialized_der()).unwrap();
        let x = base64(pair.der_bytes());
        Self {
            algorithm: "EdDSA",
            pem: pair.public_key_pem(),
            jwk: format!(r#""kty":"OKP","crv":"Ed25519","x":"{x}""#),
            sign: Box::new(move |message| key.sign(message).as_ref().to_vec()),
        }
    }

    fn all() -> [Self; 3] {
        [Self::rs256(), Self::es256(), Self::eddsa()]
    }

    /// A header with a token of `ann`.
    fn token(&self) -> String {
        #[expect(clippy::disallowed_methods, reason = "a token has an end")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let algorithm = self.algorithm;
        let head = format!(r#"{{"alg":"{algorithm}","kid":"{algorithm}"}}"#);
        let claims = format!(r#"{{"exp":{},"sub":"ann"}}"#, now.as_secs() + 3_600);
        let signed = format!("{}.{}", base64(head.as_bytes()), base64(claims.as_bytes()));
        let signature = base64(&(self.sign)(signed.as_bytes()));
        format!("Authorization: Bearer {signed}.{signature}")
    }
}

/// A set of these keys, each named for its algorithm.
fn key_set(keys: &[SigningKey]) -> String {
    let mut set = String::new();
    for SigningKey { algorithm, jwk, .. } in keys {
        let comma = if set.is_empty() { "" } else { "," };
        write!(set, r#"{comma}{{"kid":"{algorithm}",{jwk}}}"#).unwrap();
    }
    format!(r#"{{"keys":[{set}]}}"#)
}

/// A gateway for `ann` alone, whose keys are in this place.
fn start_with(folder: &Path, upstream: &Upstream, keys: &str) -> Server {
    let config = format!(
        "gateway: {{routes: [{{require: {{\"claim:sub\": [ann]}}}}]}}\n\
         identity: {{tokens: {{{keys}, issuer: any, audience: any}}}}\n"
    );
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    start(folder, upstream, &[])
}

fn status(server: &Server, header: &str) -> u16 {
    ask(server, "GET /", &[header]).status()
}

#[test]
fn every_algorithm_is_verified_by_public_keys_in_files() {
    let folder = scratch("gateway_algorithms");
    let (keys, strangers) = (SigningKey::all(), SigningKey::all());
    let files = ["rsa.pem", "ec.pem", "ed.pem"];
    for (key, file) in keys.iter().zip(files) {
        fs::write(folder.join(file), &key.pem).unwrap();
    }
    fs::write(folder.join("keys.json"), key_set(&keys)).unwrap();
    let upstream = Upstream::start();
    for place in ["keys: [rsa.pem, ec.pem, ed.pem]", "jwks: keys.json"] {
        let server = start_with(&folder, &upstream, place);
        for (key, stranger) in keys.iter().zip(&strangers) {
            let algorithm = key.algorithm;
            assert_eq!(status(&server, &key.token()), 200, "{algorithm} {place}");
            // The RSA key is the same, because making one takes seconds.
            if algorithm != "RS256" {
                assert_eq!(
                    status(&server, &stranger.token()),
                    401,
                    "{algorithm} {place}"
                );
            }
            let token = key.token();
            let (signed, _) = token.rsplit_once('.').unwrap();
            let forged = format!("{signed}.{}", base64(&[7; 64]));
            assert_eq!(status(&server, &forged), 401, "{algorithm} {place}");
        }
    }
}

#[test]
fn a_changed_key_set_comes_into_force() {
    let folder = scratch("gateway_key_set");
    let [_, old, new] = SigningKey::all();
    let path = folder.join("keys.json");
    let (old_token, new_token) = (old.token(), new.token());
    fs::write(&path, key_set(&[old])).unwrap();
    let upstream = Upstream::start();
    let mut server = start_with(&folder, &upstream, "jwks: keys.json");
    assert_eq!(status(&server, &old_token), 200);
    assert_eq!(status(&server, &new_token), 401);
    // A key that cannot be used beside it does no harm.
    let weak = SigningKey {
        algorithm: "weak",
        jwk: r#""kty":"oct","k":"AAAA""#.to_owned(),
        ..SigningKey::eddsa()
    };
    replace(&path, &key_set(&[new, weak]));
    let line = server.next_line("left out a token key");
    assert!(line.contains("the secret has 3 bytes"), "{line}");
    assert!(line.ends_with(r#"key="weak""#), "{line}");
    server.next_line(RELOADED);
    assert_eq!(status(&server, &old_token), 401);
    assert_eq!(status(&server, &new_token), 200);
}

#[test]
fn a_changed_secret_comes_into_force() {
    let folder = scratch("gateway_secret");
    let path = folder.join("token.secret");
    let other = "another secret of more than 32 bytes";
    fs::write(&path, SECRET).unwrap();
    let upstream = Upstream::start();
    let mut server = start_with(&folder, &upstream, "secret_file: token.secret");
    let by = |secret: &[u8]| signed_by(secret, "", r#""sub":"ann""#);
    assert_eq!(status(&server, &by(SECRET)), 200);
    assert_eq!(status(&server, &by(other.as_bytes())), 401);
    replace(&path, other);
    server.next_line(RELOADED);
    assert_eq!(status(&server, &by(SECRET)), 401);
    assert_eq!(status(&server, &by(other.as_bytes())), 200);
}

#[test]
fn changed_api_keys_come_into_force() {
    let folder = scratch("gateway_changed_api_keys");
    write_api_keys(&folder, "ann", "key-of-ann");
    let config = "gateway: {routes: [{require: {api_key: [ann, bob]}}]}\n\
                  identity: {api_keys: {file: keys.yaml, hash_key_file: hash.key}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let mut server = start(&folder, &upstream, &[]);
    assert_eq!(status(&server, "X-Api-Key: key-of-ann"), 200);
    assert_eq!(status(&server, "X-Api-Key: key-of-bob"), 403);
    write_api_keys(&folder, "bob", "key-of-bob");
    server.next_line(RELOADED);
    assert_eq!(status(&server, "X-Api-Key: key-of-ann"), 403);
    assert_eq!(status(&server, "X-Api-Key: key-of-bob"), 200);
}

/// The first request with a token is decided in two steps, and the later ones in one. The client is told the same by both.
#[test]
fn the_first_request_with_a_token_tells_of_the_tighter_limit() {
    let folder = scratch("gateway_tighter_limit");
    fs::write(folder.join("token.secret"), SECRET).unwrap();
    let rules = "domain: gateway\ndescriptors:\n\
                 - {key: address, rate_limit: {unit: year, requests_per_unit: 3}}\n\
                 - {key: user, rate_limit: {unit: year, requests_per_unit: 100}}\n\
                 - {key: user, value: bob, rate_limit: {unit: year, requests_per_unit: 2}}\n";
    fs::write(folder.join("rules.yaml"), rules).unwrap();
    let config = "rules: rules.yaml\n\
                  gateway: {descriptors: [{address: client_address}, {user: \"claim:sub\"}]}\n\
                  identity: {tokens: {secret_file: token.secret, issuer: any, audience: any}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let limits = ["ann", "bob"].map(|user| {
        // Each user has an address with its whole limit.
        let server = start(&folder, &upstream, &[]);
        let token = token(&format!(r#""sub":"{user}""#));
        [(); 2].map(|()| ask(&server, "GET /", &[&token]).number("x-ratelimit-limit"))
    });
    assert_eq!(limits, [[Some(3); 2], [Some(2); 2]]);
}
