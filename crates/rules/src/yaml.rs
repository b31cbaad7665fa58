//! YAML ends here: bytes to a small tree of nodes that know their places.
//!
//! The tree is bounded in depth and in nodes, those that aliases stand for counted each time, so
//! no input makes the stages after this one large.

mod settle;

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::code::Code;
use crate::findings::{Finding, Findings};
use crate::node::{Kind, Node, Pair, Scalar, Style};
use crate::span::Span;
use settle::settle;

/// The largest file: some hundred and fifty thousand rules.
pub(crate) const MAX_FILE_BYTES: usize = 16 << 20;

/// The deepest nesting of lists and blocks: forty levels of descriptors, with their limits.
pub(crate) const MAX_DEPTH: usize = 96;

/// The most nodes of all files together, aliases expanded: eleven for each of 180,000 plain rules.
pub(crate) const MAX_NODES: usize = 2_000_000;

/// A scalar counts as one node more for each so many bytes, for an alias copies them as well.
const BYTES_PER_NODE: usize = 64;

/// What a file holds.
pub(crate) enum Tree {
    /// Nothing but blanks and comments.
    Empty,
    /// Its one document.
    Root(Node),
}

/// Builds the tree from the parser's events.
struct Builder<'a> {
    source: Places<'a>,
    open: Vec<Open>,
    /// What aliases stand for, with its size.
    anchors: HashMap<usize, (Rc<Node>, usize)>,
    nodes: usize,
    nodes_left: &'a mut usize,
    root: Option<Node>,
}

/// Turns the parser's places into ours.
struct Places<'a> {
    file: usize,
    lines: Vec<&'a str>,
}

/// A list or block whose end has not come yet.
struct Open {
    span: Span,
    anchor: usize,
    first_node: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Block { pairs: Vec<Pair>, key: Option<Node> },
}

/// Parses one file; `None` if there is no tree to go on with, and then `findings` says why.
///
/// Takes what the file needs from `nodes_left`.
pub(crate) fn parse(
    file: usize,
    bytes: &[u8],
    nodes_left: &mut usize,
    findings: &mut Findings,
) -> Option<Tree> {
    match try_parse(file, bytes, nodes_left) {
        Ok(Some(mut root)) => {
            settle(&mut root, findings);
            Some(Tree::Root(root))
        }
        Ok(None) => Some(Tree::Empty),
        Err(fault) => {
            findings.push(fault);
            None
        }
    }
}

fn try_parse(file: usize, bytes: &[u8], nodes_left: &mut usize) -> Result<Option<Node>, Finding> {
    let start = Span::start_of(file);
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!(
            "the file has {} bytes, more than {MAX_FILE_BYTES}",
            bytes.len()
        );
        return Err(Finding::error(Code::TooLarge, start, message));
    }
    let text = decode(file, bytes)?;
    let mut builder = Builder {
        source: Places {
            file,
            lines: text.lines().collect(),
        },
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        nodes_left,
        root: None,
    };
    let options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        emit_comments: false,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| builder.source.syntax(&error))?;
        builder.take(event, builder.source.span(&span))?;
    }
    Ok(builder.root)
}

fn decode(file: usize, bytes: &[u8]) -> Result<&str, Finding> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let before = String::from_utf8_lossy(valid);
        let line = before.matches('\n').count() + 1;
        let last = before.rsplit('\n').next().unwrap_or_default();
        let column = last.chars().count() + 1;
        let span = Span {
            file,
            line,
            column,
            end_column: column + 1,
        };
        Finding::error(Code::NotUtf8, span, "the file is not UTF-8 from here on")
    })
}

/// The content of a file without the mark that some editors put first.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

// === impl Builder ===

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => Err(second_document(span)),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain
                    || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let style = if is_text { Style::Text } else { Style::Plain };
                let size = 1 + text.len() / BYTES_PER_NODE;
                self.count(size, span)?;
                let kind = Kind::Scalar(Scalar {
                    text: text.into_owned(),
                    style,
                });
                self.place(Node { span, kind }, anchor, size)
            }
            Event::SequenceStart(_, anchor, _) => self.open(span, anchor, Content::List(vec![])),
            Event::MappingStart(_, anchor, _) => self.open(
                span,
                anchor,
                Content::Block {
                    pairs: vec![],
                    key: None,
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, content: Content) -> Result<(), Finding> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.count(1, span)?;
        self.open.push(Open {
            span,
            anchor,
            first_node: self.nodes,
            content,
        });
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), Finding> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let mut span = open.span;
        if end.line == span.line {
            span.end_column = end.end_column.max(span.end_column);
        }
        let kind = match open.content {
            Content::List(nodes) => Kind::List(nodes),
            Content::Block { pairs, .. } => Kind::Block(pairs),
        };
        let size = self.nodes - open.first_node + 1;
        self.place(Node { span, kind }, open.anchor, size)
    }

    /// Puts in what the alias stands for, with the places of the original: a fault in it is
    /// mended there.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Finding> {
        let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
            let message = "the alias stands inside what it stands for";
            return Err(Finding::error(Code::Syntax, span, message));
        };
        self.count(size, span)?;
        if self.open.len() + node.depth() > MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.place((*node).clone(), 0, size)
    }

    fn place(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), Finding> {
        // The parser numbers anchors from 1; 0 is its word for none. The copy kept for the aliases
        // counts as well, for anchors may nest.
        if anchor != 0 {
            self.count(size, node.span)?;
            self.anchors.insert(anchor, (Rc::new(node.clone()), size));
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(nodes)) => nodes.push(node),
            Some(Content::Block { pairs, key }) => match key.take() {
                None => *key = Some(node),
                Some(key) => pairs.push(Pair { key, value: node }),
            },
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), Finding> {
        self.nodes = self.nodes.saturating_add(nodes);
        *self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or_else(|| {
            let message =
                format!("the files have more than {MAX_NODES} values in all, aliases expanded");
            Finding::error(Code::TooLarge, span, message)
        })?;
        Ok(())
    }
}

// === impl Places ===

impl Places<'_> {
    fn span(&self, span: &granit_parser::Span) -> Span {
        let (start, end) = (&span.start, &span.end);
        let column = start.col() + 1;
        let end_column = if end.line() == start.line() {
            end.col() + 1
        } else {
            self.end_of(start.line())
        };
        Span {
            file: self.file,
            line: start.line(),
            column,
            end_column: end_column.max(column),
        }
    }

    /// The column after the last character of a line.
    fn end_of(&self, line: usize) -> usize {
        self.lines
            .get(line.saturating_sub(1))
            .map_or(0, |text| text.trim_end().chars().count())
            + 1
    }

    fn syntax(&self, error: &ScanError) -> Finding {
        let mark = error.marker();
        // An error at the end of the file is reported on a line that is not there.
        let line = mark.line().clamp(1, self.lines.len().max(1));
        let column = if line == mark.line() {
            mark.col() + 1
        } else {
            self.end_of(line)
        };
        let span = Span {
            file: self.file,
            line,
            column,
            end_column: column,
        };
        let text = self.lines.get(line - 1).copied().unwrap_or_default();
        let info = error.info();
        let message = format!("not YAML: {}", first_lower(&info));
        Finding::error(Code::Syntax, span, message)
            .maybe_hint(syntax_hint(text, column, &info).map(str::to_owned))
    }
}

/// What to do about a line that is not YAML, from the character at which the parser gave up and from
/// what it says.
fn syntax_hint(line: &str, column: usize, info: &str) -> Option<&'static str> {
    let at = line.chars().nth(column.saturating_sub(1));
    let hint = if line.trim_start_matches(' ').starts_with('\t') {
        "YAML is indented with spaces; this line begins with a tab"
    } else if at == Some('*') {
        "`*` refers to an anchor; a pattern that begins with it needs quotes: `\"*…\"`"
    } else if matches!(at, Some('@' | '%')) {
        "a value that begins with this character needs quotes"
    } else if info.contains("mapping values") {
        "put a value with `: ` in it in quotes, or compare the indentation with the lines above"
    } else if info.contains("block") {
        "compare the indentation with the lines above"
    } else {
        return None;
    };
    Some(hint)
}

fn too_deep(span: Span) -> Finding {
    let message = format!("nested deeper than {MAX_DEPTH} lists and blocks");
    Finding::error(Code::TooLarge, span, message)
}

fn second_document(span: Span) -> Finding {
    Finding::error(Code::SecondDocument, span, "a second document begins here")
        .hint("a file holds one document: put this part into a file of its own")
}

fn first_lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
