//! Holds the number of instructions that it takes to write down one verdict: this is done for every
//! request.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

/// So many that chance evens out.
const RECORDS: Program = Program {
    target: ["--example", "records"],
    function: "record_repeatedly",
    times: 100_000,
};

#[test]
fn a_record_takes_as_many_instructions_as_written_down() {
    let says = format!("{} recorded\n", RECORDS.times);
    let of = |name, arguments| Workload {
        name,
        arguments,
        says: says.clone(),
    };
    // A request that passes, and one that does not.
    hold(
        &RECORDS,
        &[of("allowed", &["allowed"]), of("refused", &["refused"])],
    );
}
