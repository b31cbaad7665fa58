//! What clients are told.

use tidegate_answer::{Answers, DenialBody, Dialect, HeaderNames, Headers};
use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::Words;

/// In which headers clients are told about limits, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderChoice {
    /// Those of a dialect.
    Dialect(Dialect),
    /// Those of the operator's own names.
    Named,
}

pub(super) fn read(mut section: Section<'_, '_>) -> Answers {
    let choice = section.value(
        "headers",
        "In which headers clients are told about limits, where a rule does not say",
        HeaderChoice::Dialect(Dialect::default()),
    );
    let names = header_names(section.block("names", "The names of headers: named"));
    let headers = match choice {
        HeaderChoice::Dialect(dialect) => Headers::Dialect(dialect),
        HeaderChoice::Named => Headers::Named(names),
    };
    let body = section.value(
        "body",
        "The body of a denial over gRPC and of /v1/authorize",
        DenialBody::default(),
    );
    Answers { headers, body }
}

fn header_names(mut section: Section<'_, '_>) -> HeaderNames {
    let mut name = |name, about, default: &str| section.value(name, about, default.to_owned());
    let limit = name("limit", "The header of the limit", "RateLimit-Limit");
    let remaining = name(
        "remaining",
        "The header of what remains",
        "RateLimit-Remaining",
    );
    let reset = name(
        "reset",
        "The header of the seconds to the end of the window",
        "RateLimit-Reset",
    );
    for (field, name) in [
        ("limit", &limit),
        ("remaining", &remaining),
        ("reset", &reset),
    ] {
        if let Err(bad) = HeaderNames::new(name, name, name) {
            section.fault(
                field,
                Code::BadValue,
                bad.to_string(),
                "choose another name",
            );
        }
    }
    HeaderNames::new(&limit, &remaining, &reset).unwrap_or_default()
}

impl Words for HeaderChoice {
    const EXPECTED: &'static str = "a dialect";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("x-ratelimit", Self::Dialect(Dialect::XRateLimit)),
        ("ietf", Self::Dialect(Dialect::Ietf)),
        ("ietf-06", Self::Dialect(Dialect::Ietf06)),
        ("github", Self::Dialect(Dialect::GitHub)),
        ("envoy", Self::Dialect(Dialect::Envoy)),
        ("none", Self::Dialect(Dialect::None)),
        ("named", Self::Named),
    ];
}

impl Words for DenialBody {
    const EXPECTED: &'static str = "a body";
    const WORDS: &'static [(&'static str, Self)] =
        &[("problem", Self::Problem), ("none", Self::Empty)];
}
