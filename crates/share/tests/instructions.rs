//! Holds the number of instructions of a decision from memory: of this node alone, leased, refused as
//! before, and of two leased limits together; and of a strict one, where the common store is another table
//! in memory, so that beside it only the note is paid for.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

/// So many that a draw in between does not show.
const DECISIONS: Program = Program {
    target: ["--bin", "decisions"],
    function: "decide_repeatedly",
    times: 1_000,
};

#[test]
fn a_decision_takes_as_many_instructions_as_written_down() {
    let times = DECISIONS.times;
    let of = |name, arguments, n_admitted| Workload {
        name,
        arguments,
        says: format!("{n_admitted} of {times} admitted\n"),
    };
    let workloads = [
        of("node", &["node"], times),
        of("strict", &["strict"], times),
        of("leased", &["leased"], times),
        of("refused", &["refused"], 0),
        of("several", &["several"], times),
    ];
    hold(&DECISIONS, &workloads);
}
