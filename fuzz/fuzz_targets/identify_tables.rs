//! Any bytes as the files of identities: key sets, PEM, API keys and labels. None of them panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_identify::{ApiKeyTable, LabelTable, TokenKeys};

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind {
        b'j' => drop(TokenKeys::from_jwks(bytes)),
        b'p' => drop(TokenKeys::from_pem(bytes)),
        b'k' => drop(ApiKeyTable::read("keys.yaml", bytes)),
        _ => {
            if let Ok(table) = LabelTable::read(bytes) {
                let _ = table.find([203, 0, 113, 7].into());
            }
        }
    }
});
