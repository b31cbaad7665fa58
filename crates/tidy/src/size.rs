//! Files and functions small enough to hold in mind.

use crate::{Fault, Source};

/// Lines of a file before its tests. From the codebases the house style is learnt from: 95 of 100
/// files of the calm ones stay under this.
pub const MAX_FILE_LINES: usize = 400;

/// Lines of a function, signature and braces included. From the same place.
pub const MAX_FUNCTION_LINES: usize = 60;

/// Finds a file with more than [`MAX_FILE_LINES`] before its tests.
pub fn long_file(source: &Source) -> Option<Fault> {
    let lines = source.lines_before_tests();
    (lines > MAX_FILE_LINES).then(|| {
        let message = format!("{lines} lines before tests, at most {MAX_FILE_LINES}");
        Fault::new(&source.path, message)
    })
}

/// Finds functions outside tests with more than [`MAX_FUNCTION_LINES`].
pub fn long_functions(source: &Source) -> Vec<Fault> {
    let long = source
        .functions
        .iter()
        .filter(|function| function.lines > MAX_FUNCTION_LINES && !source.is_test(function.line));
    long.map(|function| {
        let (name, lines) = (&function.name, function.lines);
        let message = format!("fn {name} has {lines} lines, at most {MAX_FUNCTION_LINES}");
        Fault::at(&source.path, function.line, message)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_may_have_400_lines_and_no_more() {
        let check = |lines| long_file(&Source::parse("crates/a/src/lib.rs", &"\n".repeat(lines)));
        assert_eq!(check(400), None);
        assert!(check(401).is_some());
    }

    #[test]
    fn lines_of_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(900));
        assert_eq!(
            long_file(&Source::parse("crates/a/src/lib.rs", &tests)),
            None
        );
    }

    #[test]
    fn a_function_may_have_60_lines_and_no_more() {
        let check = |text: &str| long_functions(&Source::parse("crates/a/src/lib.rs", text)).len();
        assert_eq!(check(&function_of(60)), 0);
        assert_eq!(check(&function_of(61)), 1);
        assert_eq!(check(&format!("impl Foo {{ {} }}", function_of(61))), 1);
        assert_eq!(check(&format!("trait Foo {{ {} }}", function_of(61))), 1);
        assert_eq!(
            check(&format!("#[cfg(test)] mod tests {{ {} }}", function_of(61))),
            0
        );
    }
}
