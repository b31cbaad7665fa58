//! The kinds of findings, by the names that machines and the docs know them by.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What kind a finding is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, for the test that holds the docs to this list.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// The file is not YAML.
    Syntax = "syntax",
    /// The file is not UTF-8.
    NotUtf8 = "not-utf8",
    /// A bound on size, depth or count is exceeded.
    TooLarge = "too-large",
    /// The file holds nothing.
    EmptyFile = "empty-file",
    /// The file holds more than one document.
    SecondDocument = "second-document",
    /// A field stands twice in one block.
    DuplicateField = "duplicate-field",
    /// No field has this name.
    UnknownField = "unknown-field",
    /// The field belongs to another level.
    MisplacedField = "misplaced-field",
    /// A field that must be there is not.
    MissingField = "missing-field",
    /// A list, block or scalar where another of them belongs.
    WrongShape = "wrong-shape",
    /// A scalar that the field cannot take.
    BadValue = "bad-value",
    /// Two fields that exclude each other.
    Conflict = "conflict",
    /// A field that means nothing without, or beside, another.
    NotApplicable = "not-applicable",
    /// The numbers are no quota.
    BadQuota = "bad-quota",
    /// The store that the rules are for cannot count the limit.
    Unfit = "unfit",
    /// Two siblings match the same.
    DuplicateRule = "duplicate-rule",
    /// Two files define one domain.
    DuplicateDomain = "duplicate-domain",
    /// Two limits of a domain have one name.
    DuplicateName = "duplicate-name",
    /// `replaces` names the limit itself.
    ReplacesItself = "replaces-itself",
    /// `replaces` names no limit of the domain.
    ReplacesNothing = "replaces-nothing",
    /// A root `rate_limit` that may belong to several descriptors.
    AmbiguousLimit = "ambiguous-limit",
    /// A form that only books print.
    LiteratureForm = "literature-form",
    /// The runtime of the field comes with a later release.
    NotAvailableYet = "not-available-yet",
    /// The rule can never match.
    HiddenRule = "hidden-rule",
    /// The rule has no effect.
    DeadRule = "dead-rule",
    /// The burst is so large that the limit hardly matters.
    MeaninglessLimit = "meaningless-limit",
    /// The allowance is less than one request.
    MeaninglessAllowance = "meaningless-allowance",
    /// A `*` in a key, which is no wildcard there.
    StarInKey = "star-in-key",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_documented() {
        let docs = include_str!("../../../docs/rules.md");
        for (at, code) in Code::ALL.iter().enumerate() {
            let name = code.as_str();
            assert!(
                !Code::ALL[..at].iter().any(|other| other.as_str() == name),
                "{name} twice"
            );
            assert!(
                docs.contains(&format!("`{name}`")),
                "docs/rules.md does not list {name}"
            );
        }
    }
}
