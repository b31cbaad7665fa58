//! The server of this commit beside the one of an earlier commit.

use std::error::Error;

use super::{Executable, IN_FLIGHT, Keys, Process, RulesFile, Sample, Shape, Sizes, Subject, load};
use crate::table::Row;

/// The processor's time of a call by each kind of caller, if there is an earlier commit to compare with. `current` serves
/// the same rules and knows all `callers` already.
pub fn rows(
    sizes: &Sizes,
    rules: &RulesFile,
    current: &Process,
    callers: &[(&str, Keys)],
) -> Result<Vec<Row>, Box<dyn Error>> {
    let Some(executable) = Executable::before() else {
        return Ok(Vec::new());
    };
    let name = executable.name();
    eprintln!("service: {name} ...");
    let before = Process::tidegate_of(&executable, rules.path(), 1, &[], &[])?;
    for &(_, keys) in callers {
        load::fill(&before, keys)?;
    }
    let mut rows = Vec::new();
    for &(calls, keys) in callers {
        let subjects = [&before, current].map(|server| Subject { server, keys });
        let in_flight = IN_FLIGHT;
        let samples = sizes.interleave(&subjects, Shape::Closed { in_flight })?;
        let [before, current] = [0, 1].map(|index| samples[index].each(Sample::cpu_micros));
        let what = format!("processor of {calls}, `{name}` beside");
        rows.push(Row::pair(&what, "µs", &before, &current));
    }
    Ok(rows)
}
