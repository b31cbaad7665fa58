//! What cargo says about the workspace and everything it depends on.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The product is built for this platform in CI; what other platforms would add is not looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A package of the workspace, or one that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// Whether it is ours.
    pub origin: Origin,
    /// What its manifest names.
    pub dependencies: Vec<Dependency>,
}

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is a member of the workspace.
    Workspace,
    /// It is somebody else's.
    Outside,
}

/// A dependency as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package.
    pub name: String,
    /// What it is needed for.
    pub kind: Kind,
}

/// What a dependency is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The package itself, or its build script.
    Product,
    /// Its tests and examples.
    Tests,
}

/// Asks cargo about the workspace whose root is given.
///
/// # Panics
///
/// If cargo fails or answers something else than it documents.
pub fn packages(root: &Path) -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            PLATFORM,
        ])
        .current_dir(root)
        .output()
        .expect("cargo must be runnable");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer = serde_json::from_slice(&output.stdout).expect("cargo answers in JSON");
    parse(&answer).expect("cargo metadata has packages with names and versions")
}

fn parse(answer: &Value) -> Option<Vec<Package>> {
    answer["packages"]
        .as_array()?
        .iter()
        .map(parse_package)
        .collect()
}

fn parse_package(package: &Value) -> Option<Package> {
    let text = |field: &str| package[field].as_str().map(str::to_owned);
    Some(Package {
        name: text("name")?,
        version: text("version")?,
        license: text("license"),
        origin: if package["source"].is_null() {
            Origin::Workspace
        } else {
            Origin::Outside
        },
        dependencies: package["dependencies"]
            .as_array()?
            .iter()
            .map(parse_dependency)
            .collect::<Option<_>>()?,
    })
}

fn parse_dependency(dependency: &Value) -> Option<Dependency> {
    let kind = if dependency["kind"].as_str() == Some("dev") {
        Kind::Tests
    } else {
        Kind::Product
    };
    Some(Dependency {
        name: dependency["name"].as_str()?.to_owned(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_cargo_writes() {
        let answer = json!({"packages": [{
            "name": "a", "version": "1.0.0", "license": "MIT", "source": null,
            "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}],
        }]});
        let dependency = |name: &str, kind| Dependency {
            name: name.to_owned(),
            kind,
        };
        let expected = Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            origin: Origin::Workspace,
            dependencies: vec![dependency("b", Kind::Product), dependency("c", Kind::Tests)],
        };
        assert_eq!(parse(&answer), Some(vec![expected]));
    }
}
