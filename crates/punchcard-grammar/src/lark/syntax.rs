//! The parts of a Lark grammar, as they were written.

use std::ops::Range;

/// One entry of a grammar.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) at: usize,
}

#[derive(Debug)]
pub(super) enum ItemKind {
    /// `name: ...`, perhaps after `%override` or `%extend`.
    Define(Mode, Definition),
    /// `%ignore ...`
    Ignore(Node),
    /// `%import common.NAME -> AS`: the name, and what it is called here.
    Import { name: String, local: String },
}

/// What a definition does to an earlier one of the same name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// There may be none.
    New,
    /// It takes its place.
    Override,
    /// It adds alternatives.
    Extend,
}

/// A rule, a template or a terminal.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) is_terminal: bool,
    /// Of a template; otherwise empty.
    pub(super) parameters: Vec<String>,
    pub(super) attributes: Attributes,
    pub(super) body: Node,
}

/// What stands in brackets after a name.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// `lazy`, and where.
    pub(super) lazy: Option<usize>,
    /// The value of `stop` or `suffix`.
    pub(super) stop: Option<Node>,
    pub(super) max_tokens: Option<u32>,
    /// The value of `capture`, or the name of the rule.
    pub(super) capture: Option<String>,
}

impl Attributes {
    /// Whether they say something of each place where the terminal stands, so that it is no plain regular expression.
    pub(super) fn counts(&self) -> bool {
        self.max_tokens.is_some() || self.capture.is_some()
    }
}

/// A part of a body, and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) at: usize,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    /// One after the other; perhaps none.
    Sequence(Vec<Node>),
    /// `a | b`
    Choice(Vec<Node>),
    /// `x?`, `[x]`, `x*`, `x+`, `x ~ 2..3`, `x{2,3}`
    Repeat { body: Box<Node>, min: u32, max: Option<u32> },
    /// `a & b`
    And(Vec<Node>),
    /// `~a`
    Not(Box<Node>),
    /// A rule, or a parameter of the template around it.
    Rule(String),
    /// A terminal.
    Terminal(String),
    /// `name{a, b}`
    Template { name: String, arguments: Vec<Node> },
    /// `"..."`
    Text { value: String, ignore_case: bool },
    /// `"a".."z"`
    Range(char, char),
    /// `/.../`
    Regex { pattern: String, flags: String },
    /// `<...>`
    Special(String),
    /// `%json {...}`: where the JSON is.
    Json(Range<usize>),
    /// `%regex {...}`: where the JSON is.
    StructuredRegex(Range<usize>),
    /// `%lark {...}`
    Nested(Vec<Item>),
}

impl Node {
    pub(super) fn new(at: usize, kind: NodeKind) -> Node {
        Node { kind, at }
    }

    /// The node itself if it is the only one, otherwise what `join` makes of them.
    pub(super) fn joined(at: usize, mut nodes: Vec<Node>, join: fn(Vec<Node>) -> NodeKind) -> Node {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            Some(last) => {
                nodes.push(last);
                Node::new(at, join(nodes))
            }
            None => Node::new(at, join(nodes)),
        }
    }
}
