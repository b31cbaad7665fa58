//! The house rules, held on the whole repository. An exception says why.

use std::sync::LazyLock;

use tidegate_tidy::tokens::Ban;
use tidegate_tidy::{
    Exception, Fault, Role, Source, Tree, arrows, dependencies, excuse, links, metadata, size,
    text, tokens,
};

static TREE: LazyLock<Tree> = LazyLock::new(Tree::of_this_repository);
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| TREE.sources());

fn check(faults: impl IntoIterator<Item = Fault>, exceptions: &[Exception]) {
    let faults: Vec<Fault> = faults.into_iter().collect();
    let left = excuse(&faults, exceptions);
    let report: Vec<String> = left.iter().map(Fault::to_string).collect();
    assert!(
        report.is_empty(),
        "{} faults:\n{}",
        report.len(),
        report.join("\n")
    );
}

fn check_sources<F: IntoIterator<Item = Fault>>(
    rule: impl Fn(&Source) -> F,
    exceptions: &[Exception],
) {
    check(SOURCES.iter().flat_map(rule), exceptions);
}

fn check_ban(ban: &Ban, exceptions: &[Exception]) {
    check_sources(|source| tokens::occurrences(source, ban), exceptions);
}

fn check_texts<F: IntoIterator<Item = Fault>>(
    ending: &str,
    rule: impl Fn(&str, &str) -> F,
    exceptions: &[Exception],
) {
    check(
        TREE.texts(ending)
            .flat_map(|(path, text)| rule(path, &text)),
        exceptions,
    );
}

#[test]
fn the_tree_is_seen() {
    // Guards all other tests here: they would pass on an empty listing.
    assert!(TREE.has("crates/tidy/tests/house.rs") && TREE.has("Cargo.lock"));
    assert!(SOURCES.iter().any(|source| source.role == Role::Product));
}

#[test]
fn crates_depend_along_the_arrows() {
    let packages = metadata::packages(TREE.root());
    check(arrows::broken(&packages, arrows::ARROWS), &[]);
}

#[test]
fn dependencies_have_licences_we_can_meet() {
    let packages = metadata::packages(TREE.root());
    check(
        dependencies::unlicensed(&packages, dependencies::LICENSES),
        &[],
    );
}

#[test]
fn no_dependency_is_there_twice() {
    let packages = metadata::packages(TREE.root());
    check(
        dependencies::doubled(&packages),
        &[
            Exception {
                place: "getrandom",
                reason: "ring has an older one than proptest, which is in tests only",
            },
            Exception {
                place: "syn",
                reason: "the macros of serde have a newer one than those of prost and asn1-rs; all run at build",
            },
            Exception {
                place: "base64",
                reason: "rcgen, which is in tests only, has a newer one than jsonwebtoken",
            },
            Exception {
                place: "rand_core",
                reason: "the traits of signatures, which jsonwebtoken needs, have an older one than proptest, which is in tests only",
            },
        ],
    );
}

#[test]
fn dependencies_come_from_the_public_registry() {
    check_texts("Cargo.lock", text::foreign_registries, &[]);
}

#[test]
fn files_are_small() {
    let rule = |source: &Source| {
        if source.role == Role::Test {
            None
        } else {
            size::long_file(source)
        }
    };
    check_sources(rule, &[]);
}

#[test]
fn functions_are_small() {
    check_sources(size::long_functions, &[]);
}

#[test]
fn nothing_unwraps_outside_tests() {
    check_ban(&tokens::UNWRAP, &[]);
}

#[test]
fn only_the_store_reads_a_clock() {
    check_ban(
        &tokens::CLOCK,
        &[
            Exception {
                place: "crates/store/src/clock.rs",
                reason: "this is the place",
            },
            Exception {
                place: "crates/observe/src/clock.rs",
                reason: "it is shown to people, and decides nothing",
            },
            Exception {
                place: "crates/server/src/core_context.rs",
                reason: "it measures how long a decision takes, and decides nothing by it",
            },
            Exception {
                place: "crates/server/src/within.rs",
                reason: "it measures how long a caller has waited, and decides no limit by it",
            },
            Exception {
                place: "crates/server/src/admin/wrong_tokens.rs",
                reason: "it slows wrong tokens of operators, and decides no limit by it",
            },
            Exception {
                place: "bench/src/fleet.rs",
                reason: "a trial takes as long as it says, whatever happens in it",
            },
            Exception {
                place: "crates/store-redis/src/client/time.rs",
                reason: "it measures how long a call waits, and decides no limit by it",
            },
            Exception {
                place: "crates/store-redis/src/test_util.rs",
                reason: "it waits for other programs, and delays bytes, in tests",
            },
            Exception {
                place: "crates/cli/src/reload/clock.rs",
                reason: "it is shown to people, and decides nothing",
            },
            Exception {
                place: "crates/gateway/src/",
                reason: "it measures how long clients and upstreams take, and decides no limit by it",
            },
            Exception {
                place: "bench/",
                reason: "it measures time, and decides nothing by it",
            },
        ],
    );
}

#[test]
fn nothing_is_unsafe() {
    check_ban(
        &tokens::UNSAFE,
        &[Exception {
            place: "bench/src/allocator.rs",
            reason: "a global allocator cannot be written without, and it ships to nobody",
        }],
    );
}

#[test]
fn nothing_sleeps() {
    check_ban(
        &tokens::SLEEP,
        &[
            Exception {
                place: "crates/server/src/admin/wrong_tokens.rs",
                reason: "a wrong token is answered late on purpose",
            },
            Exception {
                place: "crates/server/src/server.rs",
                reason: "load balancers need time to notice that a server leaves, and tell nobody",
            },
            Exception {
                place: "bench/src/fleet.rs",
                reason: "a trial takes as long as it says, whatever happens in it",
            },
            Exception {
                place: "crates/store-redis/src/client/time.rs",
                reason: "a deadline is a timer, and a server that is back tells nobody",
            },
            Exception {
                place: "crates/store-redis/src/test_util.rs",
                reason: "other programs tell nobody when they are ready",
            },
            Exception {
                place: "crates/gateway/src/",
                reason: "the timeouts of clients and upstreams are timers",
            },
            Exception {
                place: "crates/cli/src/watch.rs",
                reason: "files are at rest when nothing has happened to them for a while",
            },
            Exception {
                place: "bench/src/service/load.rs",
                reason: "a measurement lasts as long as it says",
            },
            Exception {
                place: "bench/src/gateway/program.rs",
                reason: "other programs tell nobody when they are ready",
            },
            Exception {
                place: "tests/fleet/src/",
                reason: "requests and faults of real processes come at given times",
            },
        ],
    );
}

#[test]
fn every_test_runs() {
    check_ban(&tokens::IGNORED_TEST, &[]);
}

#[test]
fn unfinished_work_has_an_issue() {
    check_texts("", text::unfinished, &[]);
}

#[test]
fn no_path_is_of_one_machine() {
    check_texts("", text::machine_paths, &[]);
}

#[test]
fn files_are_named_for_what_they_hold() {
    check(
        TREE.files().iter().filter_map(|file| text::bad_name(file)),
        &[],
    );
}

#[test]
fn rust_files_introduce_themselves() {
    let rule = |path: &str, text: &str| {
        // The tests of a file are introduced by that file.
        let is_part = path.ends_with("/tests.rs");
        if is_part {
            None
        } else {
            text::missing_introduction(path, text)
        }
    };
    check_texts(".rs", rule, &[]);
}

#[test]
fn links_lead_somewhere() {
    let rule = |path: &str, text: &str| links::broken(path, text, |target| TREE.read(target));
    check_texts(".md", rule, &[]);
}

#[test]
fn architecture_lists_every_decision_record() {
    let records: Vec<&str> = TREE
        .files()
        .iter()
        .map(String::as_str)
        .filter(|file| file.starts_with("docs/adr/"))
        .collect();
    let (path, text) = TREE
        .texts("ARCHITECTURE.md")
        .next()
        .expect("there is an ARCHITECTURE.md");
    check(links::unlisted(path, &text, records.iter().copied()), &[]);
}
