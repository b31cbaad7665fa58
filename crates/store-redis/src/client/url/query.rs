//! What comes after the question mark.

use std::path::PathBuf;
use std::time::Duration;

use super::{UrlError, duration};
use crate::client::config::{TlsOptions, Verification};

/// The parameters of a URL that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

const KNOWN: &str = "timeout, min_timeout, connect_timeout, db; of rediss:// ca, cert, key, insecure; of Sentinels \
                     sentinel_user, sentinel_password";

// === impl Query ===

impl Query {
    pub(super) fn parse(text: &str) -> Result<Self, UrlError> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.contains('@') {
                // It is no name, but the rest of a password, which no error is to show.
                return Err(UrlError::BareMark);
            }
            Ok((percent_decoded(name)?, percent_decoded(value)?))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// The value of a parameter; of one that is there twice, the last.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut taken = None;
        self.0.retain_mut(|(key, value)| {
            let is_it = key == name;
            if is_it {
                taken = Some(std::mem::take(value));
            }
            !is_it
        });
        taken
    }

    pub(super) fn take_duration(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Duration>, UrlError> {
        let bad = UrlError::BadParameter {
            name,
            expected: "a time from 1ms to 1h with its unit, as in 5ms or 1s",
        };
        let value = self.take(name);
        value.map(|value| duration(&value).ok_or(bad)).transpose()
    }

    pub(super) fn take_tls(&mut self, tls: Option<&mut TlsOptions>) -> Result<(), UrlError> {
        let names = ["ca", "cert", "key", "insecure"];
        let Some(tls) = tls else {
            return match names.into_iter().find(|name| self.take(name).is_some()) {
                None => Ok(()),
                Some(name) => Err(UrlError::NotEncrypted {
                    name,
                    scheme: "rediss",
                }),
            };
        };
        tls.ca = self.take("ca").map(PathBuf::from);
        tls.certificate = self.take("cert").map(PathBuf::from);
        tls.key = self.take("key").map(PathBuf::from);
        tls.verification = match self.take("insecure").as_deref() {
            None | Some("false") => Verification::Full,
            Some("true") => Verification::None,
            Some(_) => {
                return Err(UrlError::BadParameter {
                    name: "insecure",
                    expected: "true or false",
                });
            }
        };
        Ok(())
    }

    /// Refuses what nobody has taken.
    pub(super) fn finish(self) -> Result<(), UrlError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(UrlError::UnknownParameter { name, known: KNOWN }),
        }
    }
}

/// A part of a URL with each `%XX` replaced by the byte it stands for.
pub(super) fn percent_decoded(text: &str) -> Result<String, UrlError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2).ok_or(UrlError::BadPercent)?;
            decoded.push(hexadecimal(digits).ok_or(UrlError::BadPercent)?);
            rest = after;
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).map_err(|_| UrlError::BadPercent)
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |sum: u8, &digit| {
        let value = char::from(digit).to_digit(16)?;
        sum.checked_mul(16)?.checked_add(u8::try_from(value).ok()?)
    })
}
