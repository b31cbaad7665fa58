//! Holds the number of instructions of a check: matching in 200 rules on three levels, hashing the
//! key, deciding, and the verdict.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

const CHECKS: Program = Program {
    target: ["--example", "checks"],
    function: "check_repeatedly",
    times: 10_000,
};

#[test]
fn a_check_takes_as_many_instructions_as_written_down() {
    let says = format!("{0} of {0} passed\n", CHECKS.times);
    let by = |name, arguments| Workload {
        name,
        arguments,
        says: says.clone(),
    };
    // One limit, and two limits that are charged together.
    let keys = [
        by("user_id", &["user_id"]),
        by("remote_address", &["remote_address"]),
    ];
    hold(&CHECKS, &keys);
}
