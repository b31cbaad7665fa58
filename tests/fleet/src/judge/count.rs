//! Counting what was allowed in spans of time.

use crate::record::Record;

/// No request lasts longer, so nothing sent earlier than this before a span touches it.
const LONGEST: u64 = 6_000_000;

/// The windows of the clock that lie wholly between two times.
pub(super) fn windows(from: u64, to: u64, window: u64) -> Vec<(u64, u64)> {
    let first = from.div_ceil(window);
    let starts = (first..).map(|number| number * window);
    let all = starts.map(|start| (start, start + window));
    all.take_while(|(_, end)| *end <= to).collect()
}

/// Spans of a window's length, one after the other, that lie wholly between two times.
pub(super) fn spans(from: u64, to: u64, window: u64) -> Vec<(u64, u64)> {
    let starts = (0..).map(|number| from + number * window);
    let all = starts.map(|start| (start, start + window));
    all.take_while(|(_, end)| *end <= to).collect()
}

/// Permits that were taken by requests wholly inside a span.
pub(super) fn inside(records: &[Record], (from, to): (u64, u64)) -> u64 {
    let first = records.partition_point(|record| record.sent < from);
    let sent = records[first..]
        .iter()
        .take_while(|record| record.sent <= to);
    let inside = sent.filter(|record| record.is_inside(from, to));
    inside.map(Record::taken).sum()
}

/// Permits that were taken by requests of which any part lies in a span.
pub(super) fn touching(records: &[Record], (from, to): (u64, u64)) -> u64 {
    let earliest = from.saturating_sub(LONGEST);
    let first = records.partition_point(|record| record.sent < earliest);
    let sent = records[first..]
        .iter()
        .take_while(|record| record.sent <= to);
    let touching = sent.filter(|record| record.touches(from, to));
    touching.map(Record::taken).sum()
}

/// Permits of degraded answers that were taken in a span.
pub(super) fn degraded(records: &[Record], span: (u64, u64)) -> u64 {
    let is_degraded = records.iter().filter(|record| record.is_degraded);
    let touching = is_degraded.filter(|record| record.touches(span.0, span.1));
    touching.map(Record::taken).sum()
}

/// A time of the run as people read it: seconds after the start.
pub(super) fn at(time: u64, start: u64) -> String {
    format!("{:.1} s", (time as f64 - start as f64) / 1e6)
}
