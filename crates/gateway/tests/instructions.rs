//! Holds the number of instructions of one GET through the gateway, with a limit and without. The client and the upstream are in the
//! same thread, so theirs are counted too; they are few.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

const PROXIED_GETS: Program = Program {
    target: ["--example", "proxied_gets"],
    function: "get_repeatedly",
    times: 1_000,
};

#[test]
fn a_proxied_get_takes_as_many_instructions_as_written_down() {
    let says = || format!("{0} of {0} answered\n", PROXIED_GETS.times);
    let unlimited = Workload {
        name: "unlimited",
        arguments: &["unlimited"],
        says: says(),
    };
    let limited = Workload {
        name: "limited",
        arguments: &["limited"],
        says: says(),
    };
    hold(&PROXIED_GETS, &[unlimited, limited]);
}
