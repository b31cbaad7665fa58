//! Any text as the URL of a Redis: it is refused, without a word of what may be a password, or it is one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_store_redis::client::ClientConfig;

/// What no error may show.
const SECRET: &str = "s3cret";

fuzz_target!(|text: &str| {
    let _ = ClientConfig::from_url(text);
    // As a password, wherever it stands in what is otherwise a URL.
    if let Some((scheme, rest)) = text.split_once("://") {
        let with_password = format!("{scheme}://:{SECRET}@{rest}");
        if let Err(error) = ClientConfig::from_url(&with_password) {
            let is_secret = !text.contains(SECRET) && error.to_string().contains(SECRET);
            assert!(!is_secret, "{error}");
        }
    }
});
