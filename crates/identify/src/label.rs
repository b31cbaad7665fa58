//! Labels of addresses, such as the autonomous system or the country of a network, from a table that the operator gives.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use tidegate_rules::{Network, NetworkFault};

/// Networks and their labels. The label of the smallest network that holds an address counts.
///
/// Written as lines `NETWORK,LABEL`; blank lines and lines that begin with `#` do not count.
#[derive(Clone, PartialEq, Eq)]
pub struct LabelTable {
    /// The first addresses of ranges that reach to the next one, ascending. Apart from the labels, because a search touches
    /// only these.
    starts: Box<[u128]>,
    /// For each range the place of its label, or [`NO_LABEL`].
    labels: Box<[u32]>,
    names: Box<[Box<str>]>,
    n_networks: usize,
}

/// All faults of a table, the first [`LabelFaults::MAX_KEPT`] of them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct LabelFaults {
    /// The first faults, in the order of the file.
    pub faults: Vec<LabelFault>,
    /// The number of further faults.
    pub n_omitted: usize,
}

/// One fault of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFault {
    /// Its line, from 1.
    pub line: usize,
    /// The fault itself.
    pub kind: LabelFaultKind,
}

/// A fault of one line, or of the whole table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelFaultKind {
    /// The file is too large.
    #[error("the table has more than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    /// The file has too many networks.
    #[error("the table has more than {MAX_NETWORKS} networks")]
    TooManyNetworks,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The line has no comma.
    #[error("no comma; write NETWORK,LABEL such as 203.0.113.0/24,AS64500")]
    NoComma,
    /// The part before the comma is not a network.
    #[error("`{text}`: {fault}")]
    BadNetwork {
        /// The text.
        text: String,
        /// Its fault.
        fault: NetworkFault,
    },
    /// The part after the comma is empty, too long, has a comma outside of quotes, or control characters.
    #[error("the label is 1 to {MAX_LABEL_BYTES} printable bytes, in quotes if it has a comma")]
    BadLabel,
    /// The network stands on two lines.
    #[error("{network} is already on line {first_line}")]
    Duplicate {
        /// The network.
        network: Network,
        /// The earlier line.
        first_line: usize,
    },
}

/// One line of the table.
#[derive(Clone, Copy)]
struct LabelRow {
    network: Network,
    label: u32,
    line: u32,
}

/// The labels by their place, each once.
#[derive(Default)]
struct LabelNames<'a> {
    places: HashMap<&'a str, u32>,
    names: Vec<Box<str>>,
}

/// Cuts networks that lie in each other into ranges that do not overlap.
#[derive(Default)]
struct RangeCutter {
    starts: Vec<u128>,
    labels: Vec<u32>,
    /// The last address and the label of each network that has begun and not ended, the smallest at the end. Networks nest
    /// or are apart, so a stack is enough.
    open: Vec<(u128, u32)>,
}

/// The largest file: two million networks with labels of 40 bytes.
const MAX_FILE_BYTES: usize = 128 << 20;

/// The largest number of networks: twice the routes of the internet of 2026.
const MAX_NETWORKS: usize = 2_000_000;

/// The longest label. Names of autonomous systems have up to 100 bytes.
const MAX_LABEL_BYTES: usize = 256;

/// The place of no label. There are fewer labels than networks.
const NO_LABEL: u32 = u32::MAX;

// === impl LabelTable ===

impl LabelTable {
    /// Reads a table, or reports all its faults.
    pub fn read(text: &[u8]) -> Result<Self, LabelFaults> {
        let mut faults = LabelFaults::default();
        if text.len() > MAX_FILE_BYTES {
            faults.push(1, LabelFaultKind::TooLarge);
            return Err(faults);
        }
        let mut names = LabelNames::default();
        let mut rows: Vec<LabelRow> = Vec::new();
        for (line, bytes) in (1_u32..).zip(text.split(|byte| *byte == b'\n')) {
            match read_line(bytes) {
                Ok(None) => {}
                Ok(Some(_)) if rows.len() == MAX_NETWORKS => {
                    faults.push(line, LabelFaultKind::TooManyNetworks);
                    break;
                }
                Ok(Some((network, label))) => rows.push(LabelRow {
                    network,
                    label: names.place(label),
                    line,
                }),
                Err(kind) => faults.push(line, kind),
            }
        }
        // Wider networks come first, so that those inside cut them.
        rows.sort_unstable_by_key(|row| (row.network, row.line));
        report_duplicates(&rows, &mut faults);
        if !faults.faults.is_empty() {
            faults.faults.sort_by_key(|fault| fault.line);
            return Err(faults);
        }
        let RangeCutter { starts, labels, .. } = RangeCutter::cut(&rows);
        Ok(Self {
            starts: starts.into(),
            labels: labels.into(),
            names: names.names.into(),
            n_networks: rows.len(),
        })
    }

    /// The label of the smallest network that holds `address`.
    pub fn find(&self, address: IpAddr) -> Option<&str> {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let after = self.starts.partition_point(|start| *start <= address);
        let label = *self.labels.get(after.checked_sub(1)?)?;
        let name = self.names.get(usize::try_from(label).ok()?)?;
        Some(name)
    }

    /// The number of networks.
    pub const fn n_networks(&self) -> usize {
        self.n_networks
    }
}

impl fmt::Debug for LabelTable {
    /// Shows the size, not a million networks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabelTable")
            .field("n_networks", &self.n_networks)
            .finish_non_exhaustive()
    }
}

// === impl LabelFaults ===

impl LabelFaults {
    /// The number of faults that are kept. Nobody reads the hundredth before mending the first.
    pub const MAX_KEPT: usize = 100;

    fn push(&mut self, line: u32, kind: LabelFaultKind) {
        if self.faults.len() < Self::MAX_KEPT {
            let line = usize::try_from(line).unwrap_or(usize::MAX);
            self.faults.push(LabelFault { line, kind });
        } else {
            self.n_omitted += 1;
        }
    }
}

impl fmt::Display for LabelFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}line {}: {}", fault.line, fault.kind)?;
        }
        if self.n_omitted > 0 {
            write!(f, "\nand {} more", self.n_omitted)?;
        }
        Ok(())
    }
}

// === impl LabelNames ===

impl<'a> LabelNames<'a> {
    fn place(&mut self, label: &'a str) -> u32 {
        *self.places.entry(label).or_insert_with(|| {
            self.names.push(label.into());
            // There are at most as many labels as networks.
            u32::try_from(self.names.len() - 1).unwrap_or(NO_LABEL)
        })
    }
}

// === impl RangeCutter ===

impl RangeCutter {
    /// `rows` are sorted by first address, wider networks first.
    fn cut(rows: &[LabelRow]) -> Self {
        let mut cutter = Self::default();
        for row in rows {
            let (first, last) = row.network.range();
            cutter.close(|end| end < first);
            cutter.begin(first, row.label);
            cutter.open.push((last, row.label));
        }
        cutter.close(|_| true);
        cutter
    }

    /// Ends the open networks that end where `is_over` says; the label of the network around goes on after them.
    fn close(&mut self, is_over: impl Fn(u128) -> bool) {
        while let Some((last, _)) = self.open.pop_if(|(last, _)| is_over(*last)) {
            let around = self.open.last().map_or(NO_LABEL, |(_, label)| *label);
            if let Some(next) = last.checked_add(1) {
                self.begin(next, around);
            }
        }
    }

    fn begin(&mut self, start: u128, label: u32) {
        if self.starts.last() == Some(&start) {
            // The range that began here is empty: its network has ended, or a smaller one begins at the same address.
            self.starts.pop();
            self.labels.pop();
        }
        if self.labels.last() != Some(&label) {
            self.starts.push(start);
            self.labels.push(label);
        }
    }
}

/// Reads one line; `None` if it is blank or a comment.
fn read_line(bytes: &[u8]) -> Result<Option<(Network, &str)>, LabelFaultKind> {
    let line = bytes.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    let line = std::str::from_utf8(line).map_err(|_| LabelFaultKind::NotUtf8)?;
    let (network, label) = line.split_once(',').ok_or(LabelFaultKind::NoComma)?;
    let network = network.trim_ascii();
    let parsed = network
        .parse()
        .map_err(|fault| LabelFaultKind::BadNetwork {
            text: network.chars().take(60).collect(),
            fault,
        })?;
    let label = label.trim_ascii();
    let quoted = label
        .strip_prefix('"')
        .and_then(|label| label.strip_suffix('"'));
    let label = match quoted {
        Some(label) => label,
        None if label.contains(',') => return Err(LabelFaultKind::BadLabel),
        None => label,
    };
    let is_good = !label.is_empty()
        && label.len() <= MAX_LABEL_BYTES
        && !label.contains(|char: char| char.is_control() || char == '"');
    if is_good {
        Ok(Some((parsed, label)))
    } else {
        Err(LabelFaultKind::BadLabel)
    }
}

/// Reports networks that stand on two lines; `rows` are sorted by network, then by line.
fn report_duplicates(rows: &[LabelRow], faults: &mut LabelFaults) {
    for pair in rows.windows(2) {
        if let [first, second] = pair
            && first.network == second.network
        {
            let kind = LabelFaultKind::Duplicate {
                network: second.network,
                first_line: usize::try_from(first.line).unwrap_or(usize::MAX),
            };
            faults.push(second.line, kind);
        }
    }
}

#[cfg(test)]
mod tests;
