//! The keys and tables by which callers are told apart, read from their files.

use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_identify::{
    ApiKeyHasher, ApiKeyTable, ApiKeys, Identities, LabelTable, TokenKeys, TokenVerifier,
};

use tracing::warn;

use crate::config::{ApiKeyFiles, Identity, TokenFiles, TokenKeyPlace};
use crate::failure::Failure;
use crate::rules_files;

/// The largest table of networks: as many bytes as [`LabelTable`] reads.
const MAX_LABEL_BYTES: u64 = 128 << 20;

/// Reads all files. `fetched` is the set of keys behind a URL, as far as it is known; until then no token is good. Verified
/// tokens of `old` stay verified if keys and settings are the same.
pub(crate) fn read(
    identity: &Identity,
    fetched: Option<&TokenKeys>,
    old: &Identities,
) -> Result<Identities, Failure> {
    let mut identities = Identities::default();
    if let Some(tokens) = &identity.tokens {
        identities = identities.with_tokens(verifier(tokens, fetched, old)?);
    }
    if let Some(files) = &identity.api_keys {
        identities = identities.with_api_keys(Arc::new(api_keys(files)?));
    }
    for (name, file) in &identity.labels {
        identities = identities.with_labels(name, Arc::new(labels(file)?));
    }
    Ok(identities)
}

/// The files that [`read`] reads.
pub(crate) fn files(identity: &Identity) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    match identity.tokens.as_ref().map(|tokens| &tokens.keys) {
        Some(TokenKeyPlace::Pem(paths)) => files.extend(paths.iter().cloned()),
        Some(TokenKeyPlace::Secret(path) | TokenKeyPlace::KeySet(path)) => files.push(path.clone()),
        Some(TokenKeyPlace::Url(_)) | None => {}
    }
    if let Some(api_keys) = &identity.api_keys {
        files.extend([api_keys.file.clone(), api_keys.hash_key_file.clone()]);
    }
    files.extend(identity.labels.iter().map(|(_, file)| file.clone()));
    files
}

fn verifier(
    tokens: &TokenFiles,
    fetched: Option<&TokenKeys>,
    old: &Identities,
) -> Result<Arc<TokenVerifier>, Failure> {
    let keys = match &tokens.keys {
        TokenKeyPlace::Pem(paths) => {
            let mut text = Vec::new();
            for path in paths {
                let bytes = read_bytes(path)?;
                // Each file by itself, so that a fault names its file.
                TokenKeys::from_pem(&bytes).map_err(|fault| bad(path, &fault))?;
                text.extend_from_slice(&bytes);
                text.push(b'\n');
            }
            let first = paths.first().map_or(Path::new(""), PathBuf::as_path);
            TokenKeys::from_pem(&text).map_err(|fault| bad(first, &fault))?
        }
        TokenKeyPlace::Secret(path) => {
            TokenKeys::from_secret(&read_bytes(path)?).map_err(|fault| bad(path, &fault))?
        }
        TokenKeyPlace::KeySet(path) => {
            let keys =
                TokenKeys::from_jwks(&read_bytes(path)?).map_err(|fault| bad(path, &fault))?;
            if old.tokens().is_none_or(|old| *old.keys() != keys) {
                warn_of_left_out(&keys, &path.display());
            }
            keys
        }
        TokenKeyPlace::Url(_) => fetched.cloned().unwrap_or_else(TokenKeys::none),
    };
    let settings = &tokens.settings;
    Ok(match old.tokens() {
        Some(old) if old.settings() == settings && *old.keys() == keys => Arc::clone(old),
        Some(old) => Arc::new(old.replaced_by(settings.clone(), keys)),
        None => Arc::new(TokenVerifier::new(settings.clone(), keys)),
    })
}

/// Logs the keys of a set from `place` that are not used.
pub(crate) fn warn_of_left_out(keys: &TokenKeys, place: &dyn Display) {
    for key in keys.left_out() {
        let id = key.id.as_deref().unwrap_or_default();
        warn!(key = id, "left out a token key of {place}: {}", key.fault);
    }
}

fn api_keys(files: &ApiKeyFiles) -> Result<ApiKeys, Failure> {
    let hash_key = read_bytes(&files.hash_key_file)?;
    let hasher = ApiKeyHasher::new(&hash_key).map_err(|fault| bad(&files.hash_key_file, &fault))?;
    let bytes = read_bytes(&files.file)?;
    let name = files.file.display().to_string();
    let table = ApiKeyTable::read(&name, &bytes).map_err(Failure::BadConfig)?;
    Ok(ApiKeys::new(files.place.clone(), hasher, table))
}

fn labels(file: &Path) -> Result<LabelTable, Failure> {
    let mut bytes = Vec::new();
    let opened = rules_files::open_regular(file).map_err(|reason| bad(file, &reason))?;
    opened
        .take(MAX_LABEL_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|reason| bad(file, &reason))?;
    LabelTable::read(&bytes).map_err(|faults| bad(file, &faults))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    rules_files::read_bytes(path).map_err(|reason| bad(path, &reason))
}

fn bad(path: &Path, reason: &dyn Display) -> Failure {
    Failure::BadFile {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
