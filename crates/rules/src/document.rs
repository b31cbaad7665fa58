//! Other files in the look of the rules: a tree that knows its places, and findings that show them.
//!
//! For whoever reads a file that is not rules and wants its faults told as those of rules are.

use crate::yaml::{self, Tree};

pub use crate::code::Code;
pub use crate::duration::{DurationFault, format as format_duration, parse as parse_duration};
pub use crate::findings::{Finding, Findings, quote};
pub use crate::hint::{did_you_mean, nearest, one_of};
pub use crate::node::{Kind, Node, Pair, Scalar, Style};
pub use crate::span::Span;

/// Parses the text of source `file`, as [`Findings::add_source`] numbered it.
///
/// `None` if it holds nothing, or cannot be parsed; then `findings` says why.
pub fn parse(file: usize, bytes: &[u8], findings: &mut Findings) -> Option<Node> {
    let mut nodes_left = yaml::MAX_NODES;
    let bytes = yaml::without_byte_order_mark(bytes);
    match yaml::parse(file, bytes, &mut nodes_left, findings)? {
        Tree::Empty => None,
        Tree::Root(root) => Some(root),
    }
}
