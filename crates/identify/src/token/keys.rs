//! The keys that tokens are signed with.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Header};
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde_json::Value;

use super::spki::{self, PublicKey};
use super::{TokenFault, provider};

/// A set of keys that tokens are signed with: one secret, or public keys, never both. The algorithm of a token follows from
/// the kind of its key: HS256, RS256, ES256 or `EdDSA`.
#[derive(Clone, Debug)]
pub struct TokenKeys {
    keys: Vec<TokenKey>,
    left_out: Vec<LeftOutKey>,
}

/// A key of a set that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutKey {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its fault.
    pub fault: TokenKeyFault,
}

/// The reason why a text holds no usable keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenKeyFault {
    /// It is too long.
    #[error("the key file has {given} bytes, at most {MAX_FILE_BYTES} are read")]
    TooLarge {
        /// The number of bytes.
        given: usize,
    },
    /// It is not a JWK set.
    #[error("not a JWK set; write {{\"keys\": [...]}} as RFC 7517 has it")]
    NotAKeySet,
    /// It is not PEM.
    #[error("not a PEM file; a public key begins with -----BEGIN PUBLIC KEY-----")]
    NotPem,
    /// A PEM section is not a public key.
    #[error("the PEM file holds {found}; write the public key alone (openssl pkey -pubout)")]
    NotAPublicKey {
        /// The kind of section.
        found: &'static str,
    },
    /// A key is of a kind that no supported algorithm uses, or for another algorithm.
    #[error("a key is not RSA, P-256 or Ed25519 for RS256, ES256 or EdDSA")]
    UnsupportedKey,
    /// No key of the set is usable.
    #[error(
        "no key is usable: of {given} keys none is for signatures by HS256, RS256, ES256 or EdDSA"
    )]
    NoKeys {
        /// The number of keys in the text.
        given: usize,
    },
    /// There are too many keys.
    #[error("{given} keys, at most {most} are read")]
    TooManyKeys {
        /// The number of keys.
        given: usize,
        /// The largest number.
        most: usize,
    },
    /// A secret and public keys are in one set.
    #[error(
        "a secret (`oct`) and public keys are in one set; whoever knows a public key could sign with it"
    )]
    MixedKinds,
    /// Two keys of one algorithm have one id.
    #[error("two keys of one algorithm have the id `{id}`")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// The secret is short enough to be guessed (RFC 7518, section 3.2).
    #[error("the secret has {given} bytes, HS256 needs at least {MIN_SECRET_BYTES}")]
    ShortSecret {
        /// The number of bytes.
        given: usize,
    },
    /// An RSA key is too short or too long.
    #[error("an RSA key has {bits} bits; 2048 to 8192 are supported")]
    RsaBits {
        /// The number of bits.
        bits: usize,
    },
}

/// One key and the only algorithm it is used with.
#[derive(Clone, Debug)]
pub(super) struct TokenKey {
    id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// The largest key file. A key with its certificates takes 5 KiB, so this holds all that a provider publishes.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The largest number of keys. Providers publish two to ten.
const MAX_KEYS: usize = 100;

/// The largest number of keys that are tried for a token which names none: a forged token must not cost more.
const MAX_TRIES: usize = 4;

/// The shortest secret for HS256 (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;

// === impl TokenKeys ===

impl TokenKeys {
    /// No keys: no token is good. For a set that could not be fetched yet.
    pub const fn none() -> Self {
        Self {
            keys: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Reads a JWK set (RFC 7517). Keys for encryption, of unsupported kinds and of unsafe length are [left out](Self::left_out), as the
    /// RFC advises, so that one such key does not keep the others from being used.
    pub fn from_jwks(text: &[u8]) -> Result<Self, TokenKeyFault> {
        check_size(text)?;
        let set: Value = serde_json::from_slice(text).map_err(|_| TokenKeyFault::NotAKeySet)?;
        let Some(Value::Array(written)) = set.get("keys") else {
            return Err(TokenKeyFault::NotAKeySet);
        };
        let given = written.len();
        if given > MAX_KEYS {
            let most = MAX_KEYS;
            return Err(TokenKeyFault::TooManyKeys { given, most });
        }
        let (mut keys, mut left_out) = (Vec::with_capacity(given), Vec::new());
        for jwk in written {
            match of_json(jwk) {
                Ok(key) => keys.extend(key),
                Err(fault) => left_out.push(LeftOutKey {
                    id: jwk["kid"].as_str().map(plain_id),
                    fault,
                }),
            }
        }
        let is_telling = |key: &&LeftOutKey| key.fault != TokenKeyFault::UnsupportedKey;
        if let (true, Some(key)) = (keys.is_empty(), left_out.iter().find(is_telling)) {
            return Err(key.fault.clone());
        }
        Ok(Self {
            left_out,
            ..Self::new(keys, given)?
        })
    }

    /// Reads public keys in PEM: RSA, P-256 or Ed25519, at most four. They have no ids, so each token is tried with all of its
    /// kind.
    pub fn from_pem(text: &[u8]) -> Result<Self, TokenKeyFault> {
        check_size(text)?;
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text) {
            let (kind, der) = section.map_err(|_| TokenKeyFault::NotPem)?;
            let found = match kind {
                SectionKind::PublicKey => {
                    keys.push(of_spki(&der)?);
                    continue;
                }
                SectionKind::Certificate => "a certificate",
                SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey
                | SectionKind::EcPrivateKey => "a private key",
                _ => "something else than a key",
            };
            return Err(TokenKeyFault::NotAPublicKey { found });
        }
        let (given, most) = (keys.len(), MAX_TRIES);
        match given {
            0 => Err(TokenKeyFault::NotPem),
            1..=MAX_TRIES => Self::new(keys, given),
            _ => Err(TokenKeyFault::TooManyKeys { given, most }),
        }
    }

    /// Takes a secret for HS256. One line end after it does not belong to it; a secret that must end in one is written as a
    /// JWK (`kty: oct`).
    pub fn from_secret(secret: &[u8]) -> Result<Self, TokenKeyFault> {
        let secret = crate::without_line_end(secret);
        check_size(secret)?;
        Self::new(vec![TokenKey::secret(None, secret)?], 1)
    }

    /// The number of keys that are used.
    #[expect(
        clippy::len_without_is_empty,
        reason = "only a set that could not be fetched yet has no keys"
    )]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys of the set that are not used though they are for signatures.
    pub fn left_out(&self) -> &[LeftOutKey] {
        &self.left_out
    }

    fn new(keys: Vec<TokenKey>, given: usize) -> Result<Self, TokenKeyFault> {
        provider::install();
        if keys.is_empty() {
            return Err(TokenKeyFault::NoKeys { given });
        }
        let n_secrets = keys.iter().filter(|key| key.is_secret()).count();
        if n_secrets > 0 && n_secrets < keys.len() {
            return Err(TokenKeyFault::MixedKinds);
        }
        for (index, key) in keys.iter().enumerate() {
            let is_again = |other: &TokenKey| {
                key.id.is_some() && key.id == other.id && key.algorithm == other.algorithm
            };
            if keys[..index].iter().any(is_again) {
                let id = key.id.clone().unwrap_or_default();
                return Err(TokenKeyFault::DuplicateId { id });
            }
        }
        Ok(Self {
            keys,
            left_out: Vec::new(),
        })
    }

    /// The keys that may have signed a token with this header: the one it names, else all of its algorithm. If no key of
    /// the set has an id, the name in the token means nothing.
    pub(super) fn candidates(&self, header: &Header) -> Result<Vec<&TokenKey>, TokenFault> {
        let has_ids = self.keys.iter().any(|key| key.id.is_some());
        let id = header.kid.as_deref().filter(|_| has_ids);
        let is_named = |key: &&TokenKey| id.is_none() || key.id.as_deref() == id;
        let mut keys: Vec<&TokenKey> = self.keys.iter().filter(is_named).collect();
        if keys.is_empty() {
            return Err(TokenFault::UnknownKey);
        }
        keys.retain(|key| key.algorithm == header.alg);
        match keys.len() {
            0 => Err(TokenFault::WrongAlgorithm),
            1..=MAX_TRIES => Ok(keys),
            _ => Err(TokenFault::KeyNotNamed),
        }
    }
}

impl PartialEq for TokenKeys {
    /// Compares the keys themselves, so that a reload of the same keys can keep the verified tokens.
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(ours, theirs): (&TokenKey, &TokenKey)| {
            ours.id == theirs.id
                && ours.algorithm == theirs.algorithm
                && match (ours.key.kind(), theirs.key.kind()) {
                    (DecodingKeyKind::SecretOrDer(ours), DecodingKeyKind::SecretOrDer(theirs)) => {
                        ours == theirs
                    }
                    (
                        DecodingKeyKind::RsaModulusExponent { n, e },
                        DecodingKeyKind::RsaModulusExponent { n: n2, e: e2 },
                    ) => n == n2 && e == e2,
                    _ => false,
                }
        };
        self.keys.len() == other.keys.len() && self.keys.iter().zip(&other.keys).all(is_same)
    }
}

// === impl TokenKey ===

impl TokenKey {
    fn secret(id: Option<String>, secret: &[u8]) -> Result<Self, TokenKeyFault> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(TokenKeyFault::ShortSecret {
                given: secret.len(),
            });
        }
        Ok(Self {
            id,
            algorithm: Algorithm::HS256,
            key: DecodingKey::from_secret(secret),
        })
    }

    fn public(id: Option<String>, key: PublicKey<'_>) -> Result<Self, TokenKeyFault> {
        let (algorithm, key) = match key {
            PublicKey::Rsa { n, e } => {
                let spare = n.first().map_or(0, |byte| byte.leading_zeros());
                let bits = n.len() * 8 - usize::try_from(spare).unwrap_or(0);
                if !(2048..=8192).contains(&bits) {
                    return Err(TokenKeyFault::RsaBits { bits });
                }
                (Algorithm::RS256, DecodingKey::from_rsa_raw_components(n, e))
            }
            PublicKey::P256(point) if point.len() == 65 && point.first() == Some(&4) => {
                (Algorithm::ES256, DecodingKey::from_ec_der(point))
            }
            PublicKey::Ed25519(point) if point.len() == 32 => {
                (Algorithm::EdDSA, DecodingKey::from_ed_der(point))
            }
            PublicKey::P256(_) | PublicKey::Ed25519(_) => {
                return Err(TokenKeyFault::UnsupportedKey);
            }
        };
        Ok(Self { id, algorithm, key })
    }

    fn is_secret(&self) -> bool {
        self.key.family() == AlgorithmFamily::Hmac
    }
}

/// The key of a JWK; `None` if it is not for signatures.
fn of_json(jwk: &Value) -> Result<Option<TokenKey>, TokenKeyFault> {
    let is_for_signatures = matches!(jwk["use"].as_str(), None | Some("sig"));
    match serde_json::from_value::<Jwk>(jwk.clone()) {
        _ if !is_for_signatures => Ok(None),
        Ok(jwk) => of_jwk(&jwk).map(Some),
        Err(_) => Err(TokenKeyFault::UnsupportedKey),
    }
}

fn of_jwk(jwk: &Jwk) -> Result<TokenKey, TokenKeyFault> {
    let expected = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
        _ => return Err(TokenKeyFault::UnsupportedKey),
    };
    let is_expected = |named: KeyAlgorithm| named == KeyAlgorithm::from(expected);
    if !jwk.common.key_algorithm.is_none_or(is_expected) {
        return Err(TokenKeyFault::UnsupportedKey);
    }
    let key = DecodingKey::from_jwk(jwk).map_err(|_| TokenKeyFault::UnsupportedKey)?;
    let id = jwk.common.key_id.clone();
    match (expected, key.kind()) {
        (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => TokenKey::secret(id, secret),
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            TokenKey::public(id, PublicKey::P256(point))
        }
        (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
            TokenKey::public(id, PublicKey::Ed25519(point))
        }
        (_, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let (n, e) = (spki::without_zeros(n), spki::without_zeros(e));
            TokenKey::public(id, PublicKey::Rsa { n, e })
        }
        _ => Err(TokenKeyFault::UnsupportedKey),
    }
}

/// The beginning of an id, without characters that would break a line of the log.
fn plain_id(id: &str) -> String {
    let plain = id.chars().filter(|char| !char.is_control());
    plain.take(64).collect()
}

fn of_spki(der: &[u8]) -> Result<TokenKey, TokenKeyFault> {
    let key = spki::read(der).ok_or(TokenKeyFault::UnsupportedKey)?;
    TokenKey::public(None, key)
}

const fn check_size(text: &[u8]) -> Result<(), TokenKeyFault> {
    if text.len() > MAX_FILE_BYTES {
        return Err(TokenKeyFault::TooLarge { given: text.len() });
    }
    Ok(())
}
