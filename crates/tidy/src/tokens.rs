//! Words of Rust that must not be written, or only in their place.

use crate::source::Token;
use crate::{Fault, Source};

/// Which lines of a file a ban applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Everywhere,
    /// All but tests.
    OutsideTests,
}

/// Token sequences that must not occur.
#[derive(Clone, Copy, Debug)]
pub struct Ban {
    /// The sequences: tokens with spaces between.
    pub sequences: &'static [&'static str],
    /// Where they must not occur.
    pub scope: Scope,
    /// What to tell who wrote one.
    pub message: &'static str,
}

/// A panic without a reason. `expect` states one.
pub const UNWRAP: Ban = Ban {
    sequences: &[
        ". unwrap ( )",
        ". unwrap_err ( )",
        "Option : : unwrap",
        "Result : : unwrap",
    ],
    scope: Scope::OutsideTests,
    message: "unwrap outside tests; handle it, or say with expect why it holds",
};

/// Clocks: the store's clock decides, and no other.
pub const CLOCK: Ban = Ban {
    sequences: &[
        "Instant : : now",
        "SystemTime : : now",
        "UNIX_EPOCH . elapsed",
        "Utc : : now",
        "Local : : now",
        "OffsetDateTime : : now_utc",
        "Timestamp : : now",
        "Zoned : : now",
        "quanta : :",
        "minstant : :",
        "coarsetime : :",
        "clock_gettime (",
        "_rdtsc (",
    ],
    scope: Scope::OutsideTests,
    message: "a clock outside crates/store/src/clock.rs; time belongs to the store",
};

/// Waiting for the wall clock.
pub const SLEEP: Ban = Ban {
    sequences: &["sleep (", "sleep_ms (", "sleep_until ("],
    scope: Scope::Everywhere,
    message: "sleeping; move time, or wait for the event itself",
};

/// Code that the compiler does not check. There is none in the product, which is why CI runs no
/// memory checker on it.
pub const UNSAFE: Ban = Ban {
    sequences: &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"],
    scope: Scope::Everywhere,
    message: "unsafe code; run the stress tests under valgrind in scripts/test, then except it",
};

/// Tests that do not run.
pub const IGNORED_TEST: Ban = Ban {
    sequences: &["# [ ignore", ", ignore ) ]"],
    scope: Scope::Everywhere,
    message: "a test that does not run; fix it or delete it",
};

/// Finds each place where a banned sequence occurs.
pub fn occurrences(source: &Source, ban: &Ban) -> Vec<Fault> {
    let mut faults = Vec::new();
    for sequence in ban.sequences {
        let words: Vec<&str> = sequence.split(' ').collect();
        for window in source.tokens.windows(words.len()) {
            let line = window[0].line;
            let in_scope = ban.scope == Scope::Everywhere || !source.is_test(line);
            if in_scope && reads(window, &words) {
                faults.push(Fault::at(&source.path, line, ban.message));
            }
        }
    }
    faults
}

fn reads(tokens: &[Token], words: &[&str]) -> bool {
    tokens
        .iter()
        .map(|token| token.text.as_str())
        .eq(words.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ban: &Ban, text: &str) -> Vec<Option<usize>> {
        let source = Source::parse("crates/a/src/lib.rs", text);
        occurrences(&source, ban)
            .into_iter()
            .map(|fault| fault.line)
            .collect()
    }

    #[test]
    fn unwrap_is_seen_in_code_and_in_macros() {
        assert_eq!(lines(&UNWRAP, "fn f() {\n    g().unwrap();\n}"), [Some(2)]);
        assert_eq!(
            lines(&UNWRAP, "fn f() {\n    print!(\"{}\", g().unwrap());\n}"),
            [Some(2)]
        );
    }

    #[test]
    fn unwrap_in_words_in_tests_and_with_a_default_is_fine() {
        let text = "//! Never `.unwrap()`.\nfn f() { g().unwrap_or_default(); h(\".unwrap()\"); }\n\
                    #[cfg(test)]\nmod tests { fn f() { g().unwrap(); } }";
        assert_eq!(lines(&UNWRAP, text), []);
    }

    #[test]
    fn clocks_are_seen() {
        assert_eq!(
            lines(&CLOCK, "fn f() { std::time::Instant::now(); }"),
            [Some(1)]
        );
        assert_eq!(lines(&CLOCK, "fn f() {\n SystemTime::now() }"), [Some(2)]);
        assert_eq!(lines(&CLOCK, "use quanta::Clock;"), [Some(1)]);
        assert_eq!(
            lines(&CLOCK, "fn f(clock: &impl Clock) { clock.now(); }"),
            []
        );
    }

    #[test]
    fn sleeping_is_seen_in_tests_too() {
        let text = "#[cfg(test)]\nmod tests {\n fn f() { std::thread::sleep(LONG); }\n}";
        assert_eq!(lines(&SLEEP, text), [Some(3)]);
    }

    #[test]
    fn unsafe_code_is_seen() {
        assert_eq!(lines(&UNSAFE, "fn f() {\n    unsafe { g() }\n}"), [Some(2)]);
        assert_eq!(lines(&UNSAFE, "unsafe impl Send for Foo {}"), [Some(1)]);
        assert_eq!(lines(&UNSAFE, "#![expect(unsafe_code)]\nfn f() {}"), []);
    }

    #[test]
    fn ignored_tests_are_seen() {
        assert_eq!(
            lines(&IGNORED_TEST, "#[test]\n#[ignore = \"slow\"]\nfn f() {}"),
            [Some(2)]
        );
        assert_eq!(
            lines(&IGNORED_TEST, "#[cfg_attr(miri, ignore)]\nfn f() {}"),
            [Some(1)]
        );
        assert_eq!(lines(&IGNORED_TEST, "fn ignore() {}"), []);
    }
}
