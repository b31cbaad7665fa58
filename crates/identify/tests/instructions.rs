//! Holds the number of instructions that it takes to describe one request: this is done for every request.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

const DESCRIBE: Program = Program {
    target: ["--example", "describe"],
    function: "describe_repeatedly",
    times: 10_000,
};

#[test]
fn a_description_takes_as_many_instructions_as_written_down() {
    let says = format!("{} described\n", DESCRIBE.times);
    let of = |name, arguments| Workload {
        name,
        arguments,
        says: says.clone(),
    };
    hold(
        &DESCRIBE,
        &[
            of("address", &["address"]),
            of("header", &["header"]),
            // Five descriptors of three sources.
            of("default", &["default"]),
            // A token that was verified before.
            of("token", &["token"]),
        ],
    );
}
