//! Whose code we ship: its licences, and no crate twice. `deny.toml` says the same to those who
//! have cargo-deny.

use std::collections::BTreeMap;

use crate::Fault;
use crate::metadata::{Origin, Package};

/// Licences whose terms an Apache-2.0 binary can meet by shipping their texts.
pub const LICENSES: &[&str] = &[
    "Apache-2.0",
    "MIT",
    "Unicode-3.0",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
];

/// Finds packages that cannot be had under the licences of `allowed`.
pub fn unlicensed(packages: &[Package], allowed: &[&str]) -> Vec<Fault> {
    let outside = packages
        .iter()
        .filter(|package| package.origin == Origin::Outside);
    outside
        .filter_map(|package| match package.license.as_deref() {
            None => Some(Fault::new(&package.name, "names no licence")),
            Some(license) if can_be_had(license, allowed) => None,
            Some(license) => Some(Fault::new(&package.name, format!("is under {license}"))),
        })
        .collect()
}

/// Finds packages that are there in more than one version.
pub fn doubled(packages: &[Package]) -> Vec<Fault> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(&package.name)
            .or_default()
            .push(&package.version);
    }
    let doubled = versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1);
    doubled
        .map(|(name, versions)| Fault::new(name, format!("is there as {}", versions.join(", "))))
        .collect()
}

/// Whether an SPDX expression can be met with the licences of `allowed`. An expression that is not
/// understood cannot.
fn can_be_had(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = all_of(rest, allowed);
    while take(rest, "OR") {
        met |= all_of(rest, allowed);
    }
    met
}

fn all_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    if take(rest, "(") {
        let met = any_of(rest, allowed);
        return take(rest, ")") && met;
    }
    let Some((license, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    let has_exception = take(rest, "WITH");
    if has_exception {
        *rest = rest.get(1..).unwrap_or_default();
    }
    // With an exception it is another licence than the one in the list, though a laxer one.
    !has_exception && allowed.contains(license)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: bool) {
        assert_eq!(can_be_had(expression, LICENSES), expected, "{expression}");
    }

    fn package(name: &str, version: &str, license: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.map(str::to_owned),
            origin: Origin::Outside,
            dependencies: vec![],
        }
    }

    #[test]
    fn licence_expressions_are_understood() {
        check("MIT", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0 AND MIT", false);
        check("Unlicense/MIT", true);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND NCSA", false);
        check("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true);
        check("MIT garbage", false);
        check("(MIT", false);
        check("", false);
    }

    #[test]
    fn a_package_without_a_fitting_licence_is_a_fault() {
        let packages = [
            package("a", "1.0.0", None),
            package("b", "1.0.0", Some("AGPL-3.0")),
            package("c", "1.0.0", Some("MIT")),
        ];
        let places: Vec<String> = unlicensed(&packages, LICENSES)
            .into_iter()
            .map(|fault| fault.place)
            .collect();
        assert_eq!(places, ["a", "b"]);
    }

    #[test]
    fn a_package_in_two_versions_is_a_fault() {
        let packages = [
            package("a", "1.0.0", None),
            package("a", "2.0.0", None),
            package("b", "1.0.0", None),
        ];
        assert_eq!(
            doubled(&packages),
            [Fault::new("a", "is there as 1.0.0, 2.0.0")]
        );
    }
}
