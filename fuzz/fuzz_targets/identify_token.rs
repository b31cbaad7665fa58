//! Any text as a token, and any text as the claims of a token with a good signature: the first is rejected, the second is
//! accepted only with an expiry that has not passed, and neither panics.

#![no_main]

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use ring::hmac;
use tidegate_identify::{
    AcceptedNames, ClaimPath, HeaderText, Headers, Identities, MissingToken, TokenKeys,
    TokenRejection, TokenSettings, TokenVerifier,
};

const NOW_S: u64 = 1_800_000_000;

const SECRET: [u8; 32] = [7; 32];

struct OneHeader(String);

impl Headers for OneHeader {
    fn value(&self, _: &str) -> Option<HeaderText<'_>> {
        Some(self.0.as_str().into())
    }
}

/// Identities that have checked less than 100 tokens: of one address no more bad ones are checked at once.
fn identities() -> Arc<Identities> {
    static NEWEST: Mutex<(u32, Option<Arc<Identities>>)> = Mutex::new((0, None));
    let (n_uses, newest) = &mut *NEWEST.lock().expect("no panic goes on");
    *n_uses = n_uses.wrapping_add(1);
    if *n_uses % 32 == 1 {
        let settings = TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any);
        let keys = TokenKeys::from_secret(&SECRET).expect("a secret");
        let tokens = TokenVerifier::new(settings, keys);
        *newest = Some(Arc::new(Identities::default().with_tokens(tokens.into())));
    }
    newest.clone().expect("made at the first use")
}

fuzz_target!(|text: &str| {
    let identities = identities();
    // As it is: nobody can guess a signature.
    let headers = OneHeader(format!("Bearer {text}"));
    assert!(
        identities
            .claims(&headers, None, MissingToken::Deny, NOW_S)
            .is_err()
    );

    // As header and claims of a signed token.
    let (header, claims) = text
        .split_once('\n')
        .unwrap_or((r#"{"alg":"HS256"}"#, text));
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let message = format!(
        "{}.{}",
        encode(header.as_bytes()),
        encode(claims.as_bytes())
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, &SECRET);
    let signature = encode(hmac::sign(&key, message.as_bytes()).as_ref());
    let headers = OneHeader(format!("Bearer {message}.{signature}"));
    match identities.claims(&headers, None, MissingToken::Deny, NOW_S) {
        Ok(Some(claims)) => {
            assert!(claims.expires_at_s().saturating_add(30) > NOW_S);
            let _ = claims.get(&ClaimPath::Name("sub".to_owned()));
            let _ = claims.get(&ClaimPath::Pointer("/a/0/b".to_owned()));
        }
        Err(TokenRejection::Bad(_)) => {}
        Ok(None) | Err(TokenRejection::Missing) => panic!("the token is not found"),
        Err(TokenRejection::TooManyFailures) => panic!("less than 100 were checked"),
    }
});
