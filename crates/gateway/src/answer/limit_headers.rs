//! Headers that tell a client about its limits.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use smallvec::SmallVec;
use tidegate_answer::{DefaultNumbers, Headers};
use tidegate_limiter::Verdict;

/// Headers that tell a client about its limits. They become headers only when the response is there, because until then they are
/// moved from step to step.
#[derive(Debug, Default)]
pub(crate) enum LimitHeaders {
    /// None.
    #[default]
    None,
    /// Those of the default dialect.
    Default(DefaultNumbers),
    /// Those of another one.
    Lines(Vec<(HeaderName, HeaderValue)>),
}

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RETRY_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-retry-after");

/// The beginnings of the names of headers that tell of limits.
const FAMILIES: [&str; 3] = ["ratelimit", "x-ratelimit", "x-rate-limit"];

/// The values of small numbers, made once: nearly all numbers of nearly all responses are small, and to copy a value costs a third of the
/// instructions of making it.
static SMALL_NUMBERS: LazyLock<Box<[HeaderValue]>> =
    LazyLock::new(|| (0..SMALL_TEXTS.len()).map(small_number).collect());

/// The texts of small numbers, with zeros in front. A value that is not static is allocated, and its copies count references on all cores.
static SMALL_TEXTS: [[u8; 4]; 10_000] = {
    let mut texts = [[b'0'; 4]; 10_000];
    let mut number = 1;
    while number < texts.len() {
        texts[number] = match texts[number - 1] {
            [first, b'9', b'9', b'9'] => [first + 1, b'0', b'0', b'0'],
            [first, second, b'9', b'9'] => [first, second + 1, b'0', b'0'],
            [first, second, third, b'9'] => [first, second, third + 1, b'0'],
            [first, second, third, fourth] => [first, second, third, fourth + 1],
        };
        number += 1;
    }
    texts
};

// === impl LimitHeaders ===

impl LimitHeaders {
    /// The headers that tell of a verdict, in the dialect of its rule or else in `dialect`.
    pub(crate) fn of(verdict: &Verdict, dialect: &Headers) -> Self {
        if let Some(numbers) = DefaultNumbers::of(verdict, dialect) {
            return Self::Default(numbers);
        }
        let mut lines = Vec::new();
        tidegate_answer::headers(verdict, dialect, |name, value| {
            // Names are tokens and values printable, so both are always there.
            if let (Ok(name), Ok(value)) = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            ) {
                lines.push((name, value));
            }
        });
        Self::Lines(lines)
    }

    /// True if there is no header to add.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Default(numbers) => {
                numbers.limit_and_remaining.is_none() && numbers.retry_after.is_none()
            }
            Self::Lines(lines) => lines.is_empty(),
        }
    }

    /// Adds the headers to a response.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        match self {
            Self::None => {}
            Self::Default(numbers) => {
                if let Some((limit, remaining)) = numbers.limit_and_remaining {
                    headers.insert(LIMIT, number(limit));
                    headers.insert(REMAINING, number(remaining));
                }
                if let Some(seconds) = numbers.retry_after {
                    headers.insert(X_RETRY_AFTER, number(seconds));
                    headers.insert(RETRY_AFTER, number(seconds));
                }
            }
            Self::Lines(lines) => {
                for (name, value) in lines {
                    headers.insert(name, value);
                }
            }
        }
    }
}

/// True if a response has headers of any dialect that tell of limits.
pub(crate) fn tells_limits(headers: &HeaderMap) -> bool {
    headers.keys().any(is_of_limits)
}

/// Removes all that an upstream says about limits of its own: a client cannot tell whose numbers are whose. `Retry-After` stays, because it is ours
/// only in a denial.
pub(crate) fn remove_limits(headers: &mut HeaderMap) {
    let names: SmallVec<[HeaderName; 4]> = (headers.keys().filter(|it| is_of_limits(it)))
        .cloned()
        .collect();
    for name in &names {
        headers.remove(name);
    }
}

fn is_of_limits(name: &HeaderName) -> bool {
    let text = name.as_str();
    // Most names are none by their first letter.
    text.starts_with(['r', 'x']) && FAMILIES.iter().any(|it| text.starts_with(it))
}

/// The value of a header that is a number.
fn number(number: u64) -> HeaderValue {
    let small = usize::try_from(number).ok();
    let small = small.and_then(|index| SMALL_NUMBERS.get(index)).cloned();
    small.unwrap_or_else(|| {
        // One allocation less than from the number itself.
        let text = HeaderValue::from_str(itoa::Buffer::new().format(number));
        text.unwrap_or_else(|_| number.into())
    })
}

/// The value of a number that has a static text.
fn small_number(number: usize) -> HeaderValue {
    let n_zeros = match number {
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    let digits = Bytes::from_static(&SMALL_TEXTS[number][n_zeros..]);
    HeaderValue::from_maybe_shared(digits).unwrap_or_else(|_| number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_as_it_is() {
        for it in (0..=10_100).chain([u64::MAX]) {
            assert_eq!(number(it), it.to_string());
        }
    }
}
