//! Which crate may know which: the arrows of ARCHITECTURE.md.

use crate::Fault;
use crate::metadata::{Kind, Origin, Package};

/// What one crate of the workspace may know.
#[derive(Clone, Copy, Debug)]
pub struct Arrow {
    /// The crate.
    pub package: &'static str,
    /// The crates of the workspace it may depend on.
    pub sees: &'static [&'static str],
    /// Those its tests may depend on besides.
    pub tests_see: &'static [&'static str],
    /// How much of the outside it may know.
    pub knows: Knowledge,
}

/// How much of the outside a crate may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing but the standard library.
    Nothing,
    /// Anything but the wire: no runtime, no protocol, no serialisation.
    NoWire,
    /// Anything.
    Anything,
}

/// The arrows. A crate that is not here may not exist.
pub const ARROWS: &[Arrow] = &[
    Arrow {
        package: "tidegate-algorithms",
        sees: &[],
        tests_see: &[],
        knows: Knowledge::Nothing,
    },
    Arrow {
        package: "tidegate-rules",
        sees: &["tidegate-algorithms"],
        tests_see: &[],
        knows: Knowledge::NoWire,
    },
    Arrow {
        package: "tidegate-store",
        sees: &["tidegate-algorithms"],
        tests_see: &[],
        knows: Knowledge::NoWire,
    },
    Arrow {
        package: "tidegate-share",
        sees: &["tidegate-algorithms", "tidegate-store"],
        tests_see: &["tidegate-store-redis"],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-store-redis",
        sees: &["tidegate-algorithms", "tidegate-store"],
        tests_see: &[],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-limiter",
        sees: &["tidegate-algorithms", "tidegate-rules", "tidegate-store"],
        tests_see: &[],
        knows: Knowledge::NoWire,
    },
    Arrow {
        package: "tidegate-answer",
        sees: &["tidegate-limiter"],
        tests_see: &["tidegate-rules", "tidegate-store"],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-identify",
        sees: &["tidegate-rules", "tidegate-limiter"],
        tests_see: &[],
        // The claims of tokens are JSON.
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-observe",
        sees: &["tidegate-rules", "tidegate-limiter"],
        tests_see: &["tidegate-store"],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-gateway",
        sees: &[
            "tidegate-rules",
            "tidegate-limiter",
            "tidegate-answer",
            "tidegate-identify",
            "tidegate-observe",
        ],
        tests_see: &["tidegate-store"],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-server",
        sees: &[
            "tidegate-rules",
            "tidegate-gateway",
            "tidegate-limiter",
            "tidegate-answer",
            "tidegate-identify",
            "tidegate-observe",
        ],
        tests_see: &["tidegate-store"],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate",
        sees: &[
            "tidegate-algorithms",
            "tidegate-rules",
            "tidegate-store",
            "tidegate-store-redis",
            "tidegate-share",
            "tidegate-limiter",
            "tidegate-answer",
            "tidegate-identify",
            "tidegate-observe",
            "tidegate-gateway",
            "tidegate-server",
        ],
        tests_see: &[],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-fleet",
        sees: &["tidegate-store-redis"],
        tests_see: &[],
        knows: Knowledge::Anything,
    },
    Arrow {
        package: "tidegate-tidy",
        sees: &[],
        tests_see: &[],
        knows: Knowledge::Anything,
    },
];

/// Crates that carry a runtime, a protocol or a serialisation.
const WIRE: &[&str] = &[
    "axum",
    "h2",
    "http",
    "http-body",
    "hyper",
    "hyper-util",
    "prost",
    "serde",
    "serde_json",
    "tokio",
    "tonic",
    "tower",
];

/// Finds dependencies against the arrows.
pub fn broken(packages: &[Package], arrows: &[Arrow]) -> Vec<Fault> {
    let ours: Vec<&Package> = packages
        .iter()
        .filter(|package| package.origin == Origin::Workspace)
        .collect();
    let is_ours = |name: &str| ours.iter().any(|package| package.name == name);
    let mut faults = Vec::new();
    for package in &ours {
        let Some(arrow) = arrows.iter().find(|arrow| arrow.package == package.name) else {
            faults.push(Fault::new(
                &package.name,
                "has no arrows yet; add it to ARROWS",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let allowed = if is_ours(name) {
                arrow.lets_see(name, dependency.kind)
            } else {
                arrow.lets_know(name, dependency.kind)
            };
            if !allowed {
                faults.push(Fault::new(
                    &package.name,
                    format!("must not depend on {name}"),
                ));
            }
        }
    }
    faults
}

// === impl Arrow ===

impl Arrow {
    fn lets_see(&self, name: &str, kind: Kind) -> bool {
        self.sees.contains(&name) || (kind == Kind::Tests && self.tests_see.contains(&name))
            // A crate's tests may turn on a feature of the crate itself.
            || (kind == Kind::Tests && self.package == name)
    }

    fn lets_know(&self, name: &str, kind: Kind) -> bool {
        match (self.knows, kind) {
            (_, Kind::Tests) | (Knowledge::Anything, _) => true,
            (Knowledge::NoWire, _) => !WIRE.contains(&name),
            (Knowledge::Nothing, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, origin: Origin, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: None,
            origin,
            dependencies: dependencies
                .iter()
                .map(|&(name, kind)| Dependency {
                    name: name.to_owned(),
                    kind,
                })
                .collect(),
        }
    }

    fn faults(name: &str, dependencies: &[(&str, Kind)]) -> usize {
        let packages = [
            package(name, Origin::Workspace, dependencies),
            package("tidegate-cli", Origin::Workspace, &[]),
            package("serde", Origin::Outside, &[]),
        ];
        let arrows = [
            ARROWS,
            &[Arrow {
                package: "tidegate-cli",
                sees: &[],
                tests_see: &[],
                knows: Knowledge::Anything,
            }],
        ];
        broken(&packages, &arrows.concat()).len()
    }

    #[test]
    fn an_arrow_upwards_is_a_fault() {
        assert_eq!(
            faults("tidegate-store", &[("tidegate-cli", Kind::Product)]),
            1
        );
        assert_eq!(
            faults("tidegate-store", &[("tidegate-cli", Kind::Tests)]),
            1
        );
    }

    #[test]
    fn the_wire_below_the_front_doors_is_a_fault() {
        assert_eq!(faults("tidegate-limiter", &[("serde", Kind::Product)]), 1);
        assert_eq!(faults("tidegate-limiter", &[("serde", Kind::Tests)]), 0);
        assert_eq!(faults("tidegate-server", &[("serde", Kind::Product)]), 0);
    }

    #[test]
    fn algorithms_know_nothing() {
        assert_eq!(
            faults("tidegate-algorithms", &[("smallvec", Kind::Product)]),
            1
        );
        assert_eq!(
            faults("tidegate-algorithms", &[("smallvec", Kind::Tests)]),
            0
        );
    }

    #[test]
    fn an_unknown_crate_is_a_fault() {
        assert_eq!(faults("tidegate-misc", &[]), 1);
    }
}
