//! Who may change things while the server runs.

use std::path::PathBuf;

use tidegate_rules::document::Code;
use tidegate_server::AdminToken;

use crate::config::reader::Section;
use crate::config::value::Secret;
use crate::failure::Failure;
use crate::rules_files;

/// Who may change things.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub(crate) token: Option<Secret>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) protect_reads: bool,
}

// === impl Admin ===

impl Admin {
    /// The token, read from its file if it is there.
    pub(crate) fn token(&self) -> Result<Option<AdminToken>, Failure> {
        let text = match (&self.token, &self.token_file) {
            (Some(Secret(token)), _) => token.clone(),
            (None, None) => return Ok(None),
            (None, Some(path)) => {
                let bytes = rules_files::read_bytes(path).map_err(|reason| Failure::NoToken {
                    path: path.clone(),
                    reason,
                })?;
                // What is not UTF-8 is no token, and is refused as such.
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        match AdminToken::new(text.trim()) {
            Some(token) => Ok(Some(token)),
            None => Err(Failure::BadToken),
        }
    }

    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let token = section.optional("token", "What a change must bring as a bearer token");
        let token_file: Option<PathBuf> =
            section.optional("token_file", "A file that holds the token");
        if token.is_some() && token_file.is_some() {
            section.fault(
                "token_file",
                Code::Conflict,
                "`token` and `token_file` are both set".to_owned(),
                "keep one of them",
            );
        }
        let protect_reads =
            section.value("protect_reads", "Ask for the token for reading too", false);
        if protect_reads && token.is_none() && token_file.is_none() {
            section.fault(
                "protect_reads",
                Code::MissingField,
                "nobody could read: there is no token to ask for".to_owned(),
                "set `token` or `token_file` too",
            );
        }
        Self {
            token,
            token_file,
            protect_reads,
        }
    }
}
