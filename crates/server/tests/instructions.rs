//! Holds the number of instructions of one gRPC message: read, judged and answered, without HTTP/2 around
//! it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/instructions.rs"]
mod instructions;

use instructions::{Program, Workload, hold};

const MESSAGES: Program = Program {
    target: ["--example", "messages"],
    function: "answer_repeatedly",
    times: 10_000,
};

#[test]
fn a_message_takes_as_many_instructions_as_written_down() {
    let message = Workload {
        name: "message",
        arguments: &[],
        says: format!("{0} of {0} answered\n", MESSAGES.times),
    };
    hold(&MESSAGES, &[message]);
}
