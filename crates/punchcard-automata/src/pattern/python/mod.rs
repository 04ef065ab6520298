//! The parser for Python's `re`, with what it means for `str`.
//!
//! What is particular to Python, against ECMA-262:
//!
//! * `\d`, `\s`, `\w` and `\b` know all scripts, and only ASCII under the flag a.
//! * `.` matches all but `\n`; `$` matches at the end and before a last `\n`, `\Z` only at the end; the flag m knows no other
//!   line end than `\n`.
//! * A bracket that comes first in a class is a member; brackets in classes do not nest.
//! * `\B` does not match in an empty text (CPython 3.14 has changed that).
//! * `{` is literal where no repetition is written; `{,n}` is one.
//! * Octal escapes, `\a`, `\UXXXXXXXX`, `(?#comment)`, flags for a group and at the beginning, the flag x.
//! * The flag i has equivalences of its own; see `case.rs`.
//!
//! Back-references, conditional groups and names of characters are refused. A possessive quantifier or an atomic group is
//! read where there is only one way to match what it holds, so that it makes no difference; elsewhere it is no matter of
//! the text alone, and refused.
//!
//! Departures, each towards the plain meaning: a look-behind may have any width; where a class holds a cased letter from
//! beyond U+FFFF, the flag i finds it (CPython 3.11 does not). The tables are those of CPython 3.11, of Unicode 14.

mod atoms;
mod case;
mod sets;
#[cfg(test)]
mod tests;

use super::limits::{self, MAX_MIN_LEN};
use super::syntax::{Node, NodeId, Tree};
use super::{Options, PatternError};
use crate::charset::CharSet;
use crate::languages::UNBOUNDED;
use atoms::Atom;
use case::Members;

type Result<T> = std::result::Result<T, PatternError>;

#[derive(Clone, Copy)]
struct Flags {
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
    verbose: bool,
    ascii: bool,
}

/// A part of a sequence.
enum Item {
    /// What a quantifier may follow.
    Node(NodeId),
    /// The same after a quantifier.
    Repeated(NodeId),
    /// `^`, `$`, `\A` or `\Z`.
    Edge(NodeId),
    /// `\b` or `\B`; what it becomes depends on its neighbours.
    Boundary { negated: bool, ascii: bool },
}

struct Parser<'a> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    options: &'a Options,
    flags: Flags,
    /// The names of the groups.
    names: Vec<String>,
    tree: Tree,
}

/// The tree of `source`, and its root.
pub(super) fn parse(source: &str, options: &Options) -> Result<(Tree, NodeId)> {
    let chars = limits::characters(source, options.max_length)?;
    let flags = Flags {
        ignore_case: options.ignore_case,
        multiline: options.multiline,
        dot_all: options.dot_all,
        verbose: options.verbose,
        ascii: options.ascii,
    };
    let (names, tree) = (Vec::new(), Tree::default());
    let mut parser = Parser { chars, at: 0, depth: 0, options, flags, names, tree };
    let root = parser.alternation()?;
    match parser.peek() {
        None => Ok((parser.tree, root)),
        _ => parser.refuse(parser.at, "a closing parenthesis without an opening one", "a literal one is written \\)"),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        let len = text.chars().count();
        let found = self.chars.get(self.at..self.at + len).is_some_and(|x| x.iter().copied().eq(text.chars()));
        self.at += if found { len } else { 0 };
        found
    }

    fn fail<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        Err(PatternError::new(at, message))
    }

    fn refuse<T>(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) -> Result<T> {
        Err(PatternError::new(at, message).with_hint(hint))
    }

    fn bounded(&self, at: usize, node: NodeId) -> Result<NodeId> {
        limits::bounded(&self.tree, at, node)
    }

    // ---- alternatives and sequences ----

    fn alternation(&mut self) -> Result<NodeId> {
        let start = self.at;
        // Flags for the whole pattern stand at its very beginning.
        let mut parts = vec![self.sequence(self.depth == 0)?];
        while self.eat("|") {
            parts.push(self.sequence(false)?);
        }
        let node = self.tree.alternation(parts);
        self.bounded(start, node)
    }

    fn sequence(&mut self, is_first: bool) -> Result<NodeId> {
        let start = self.at;
        let mut items = Vec::new();
        loop {
            self.skip_comments();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some('*' | '+' | '?' | '{') => self.quantified(&mut items)?,
                Some('(') => {
                    let may_be_flags = is_first && items.is_empty();
                    items.extend(self.group(may_be_flags)?.map(Item::Node));
                }
                Some(_) => {
                    let item = self.atom()?;
                    items.push(item);
                }
            }
        }
        let node = self.joined(&items);
        self.bounded(start, node)
    }

    /// The items one after the other, with boundaries as what they are beside their neighbours.
    fn joined(&mut self, items: &[Item]) -> NodeId {
        // A few neighbours on each side are enough.
        const NEAR: usize = 8;
        let node_of = |item: &Item| match *item {
            Item::Node(node) | Item::Repeated(node) | Item::Edge(node) => Some(node),
            Item::Boundary { .. } => None,
        };
        let nodes: Vec<NodeId> = items.iter().filter_map(node_of).collect();
        let (mut parts, mut seen) = (Vec::with_capacity(items.len()), 0usize);
        for item in items {
            match *item {
                Item::Node(node) | Item::Repeated(node) | Item::Edge(node) => {
                    parts.push(node);
                    seen += 1;
                }
                Item::Boundary { negated, ascii } => {
                    let before = &nodes[seen.saturating_sub(NEAR)..seen];
                    let after = &nodes[seen..nodes.len().min(seen + NEAR)];
                    let node = self.tree.boundary(negated, &sets::word(ascii), before, after);
                    parts.push(node);
                    if negated {
                        parts.push(self.text_is_not_empty());
                    }
                }
            }
        }
        self.tree.concat(parts)
    }

    /// In an empty text there is not even a `\B`, up to CPython 3.13.
    fn text_is_not_empty(&mut self) -> NodeId {
        let edges = vec![self.tree.start(), self.tree.end()];
        let empty = self.tree.concat(edges);
        self.tree.look(false, true, empty)
    }

    /// Skips what verbose mode ignores: white space of ASCII, and comments.
    fn skip_comments(&mut self) {
        while self.flags.verbose {
            match self.peek() {
                Some(' ' | '\t'..='\r') => self.at += 1,
                Some('#') => {
                    self.skip_past('\n');
                }
                _ => break,
            }
        }
    }

    /// Goes past the next `end`, and says whether there is one. A backslash hides it, in comments too.
    fn skip_past(&mut self, end: char) -> bool {
        loop {
            match self.next() {
                Some('\\') => self.at += usize::from(self.peek().is_some()),
                Some(c) if c == end => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    fn atom(&mut self) -> Result<Item> {
        let start = self.at;
        let node = match self.next() {
            Some('^') => return Ok(Item::Edge(self.line_start())),
            Some('$') => return Ok(Item::Edge(self.line_end())),
            Some('.') if self.flags.dot_all => self.tree.set(CharSet::any()),
            Some('.') => self.tree.set(CharSet::single('\n').complement()),
            Some('[') => {
                let set = self.class(start)?;
                self.tree.set(set)
            }
            Some('\\') => match self.peek() {
                Some(b @ ('b' | 'B')) => {
                    self.at += 1;
                    return Ok(Item::Boundary { negated: b == 'B', ascii: self.flags.ascii });
                }
                Some(edge @ ('A' | 'Z')) => {
                    self.at += 1;
                    return Ok(Item::Edge(if edge == 'A' { self.tree.start() } else { self.tree.end() }));
                }
                _ => match self.escape(start, false)? {
                    Atom::Char(c) => self.literal(c),
                    // Alone it is a class without a cased character, which the flag i leaves as it is.
                    Atom::Set(set) => self.tree.set(set),
                },
            },
            Some(c) => self.literal(c as u32),
            None => self.tree.empty(),
        };
        Ok(Item::Node(node))
    }

    fn literal(&mut self, c: u32) -> NodeId {
        let set = self.folded(Members { chars: vec![(c, c)], ..Members::default() });
        self.tree.set(set)
    }

    fn line_start(&mut self) -> NodeId {
        let start = self.tree.start();
        if !self.flags.multiline {
            return start;
        }
        let line_feed = self.tree.set(CharSet::single('\n'));
        let after = self.tree.look(true, false, line_feed);
        self.tree.alternation(vec![start, after])
    }

    fn line_end(&mut self) -> NodeId {
        let end = self.tree.end();
        let line_feed = self.tree.set(CharSet::single('\n'));
        let last = if self.flags.multiline { line_feed } else { self.tree.concat(vec![line_feed, end]) };
        let before = self.tree.look(false, false, last);
        self.tree.alternation(vec![end, before])
    }

    // ---- quantifiers ----

    /// Reads a quantifier and applies it to the last item; or a brace that begins none.
    fn quantified(&mut self, items: &mut Vec<Item>) -> Result<()> {
        let start = self.at;
        let (min, max) = match self.next() {
            Some('*') => (0, UNBOUNDED),
            Some('+') => (1, UNBOUNDED),
            Some('?') => (0, 1),
            _ => match self.counts(start)? {
                Some(counts) => counts,
                None => {
                    self.at = start + 1;
                    items.push(Item::Node(self.literal('{' as u32)));
                    return Ok(());
                }
            },
        };
        let node = match items.pop() {
            Some(Item::Node(node)) => node,
            Some(Item::Repeated(_)) => {
                return self.refuse(
                    start,
                    "a quantifier after a quantifier",
                    "put the first one into a group, (?:...)",
                );
            }
            _ => {
                return self.refuse(
                    start,
                    "there is nothing to repeat",
                    "a literal character is written with a backslash",
                );
            }
        };
        // A lazy quantifier finds another match first, but the same texts.
        if !self.eat("?") && self.eat("+") && !(min == max && self.has_one_way(node)) {
            return self.refuse(
                self.at - 1,
                "a possessive quantifier is not supported where it makes a difference",
                "leave the second '+' out, or write a literal one as \\+",
            );
        }
        items.push(Item::Repeated(limits::repeat(&mut self.tree, start, node, min, max)?));
        Ok(())
    }

    /// The rest of `{m}`, `{m,}`, `{,n}` or `{m,n}`, or nothing (then the place is not restored).
    fn counts(&mut self, start: usize) -> Result<Option<(u32, u32)>> {
        if self.peek() == Some('}') {
            return Ok(None);
        }
        let lower = self.number();
        let upper = if self.eat(",") { self.number() } else { lower };
        if !self.eat("}") {
            return Ok(None);
        }
        let (min, max) = (lower.unwrap_or(0), upper.unwrap_or(u64::MAX));
        if min > max {
            return self.fail(start, "the bounds of the repetition are out of order");
        }
        if min > MAX_MIN_LEN {
            return self.fail(start, format!("a part is demanded more than {MAX_MIN_LEN} times"));
        }
        // Nothing that fits into memory is longer than this.
        let bound = |n: u64| if n >= u64::from(UNBOUNDED) { UNBOUNDED } else { n as u32 };
        Ok(Some((bound(min), bound(max))))
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = Some(value.unwrap_or(0u64).saturating_mul(10).saturating_add(digit.into()));
            self.at += 1;
        }
        value
    }

    /// Whether at any place of a text there is at most one way to match the part, so that there is nothing to give back.
    fn has_one_way(&self, node: NodeId) -> bool {
        match self.tree.node(node) {
            Node::Set(_) | Node::Text(_) | Node::Start | Node::End | Node::Look { .. } => true,
            Node::Concat(items) => items.iter().all(|&item| self.has_one_way(item)),
            &Node::Repeat(inner, min, max) => min == max && self.has_one_way(inner),
            Node::Alternation(_) | Node::Anything => false,
        }
    }

    // ---- groups ----

    /// A group; nothing if it is a comment or flags for the whole pattern.
    fn group(&mut self, may_be_flags: bool) -> Result<Option<NodeId>> {
        let start = self.at;
        self.at += 1;
        let (flags, mut look, mut is_atomic) = (self.flags, None, false);
        if self.eat("?") {
            if self.eat("#") {
                if self.skip_past(')') {
                    return Ok(None);
                }
                return self.fail(start, "the comment is not closed");
            }
            look = [("=", false, false), ("!", false, true), ("<=", true, false), ("<!", true, true)]
                .into_iter()
                .find(|(sign, ..)| self.eat(sign));
            is_atomic = look.is_none() && self.eat(">");
            if look.is_none() && !is_atomic && !self.group_kind(start, may_be_flags)? {
                return Ok(None);
            }
        }
        if self.depth >= self.options.max_nesting {
            return self.refuse(
                start,
                format!("groups nest deeper than {}", self.options.max_nesting),
                "raise max_nesting if this pattern is meant",
            );
        }
        self.depth += 1;
        let mut node = self.alternation()?;
        self.depth -= 1;
        self.flags = flags;
        if !self.eat(")") {
            return self.refuse(start, "the group is not closed", "a literal parenthesis is written \\(");
        }
        if is_atomic && !self.has_one_way(node) {
            return self.refuse(
                start,
                "an atomic group is not supported where it makes a difference",
                "write a plain group (?:...)",
            );
        }
        if let Some((_, behind, negated)) = look {
            node = self.tree.look(behind, negated, node);
        }
        self.bounded(start, node).map(Some)
    }

    /// What comes after `(?`, up to where the content of the group begins; false if it has none.
    fn group_kind(&mut self, start: usize, may_be_flags: bool) -> Result<bool> {
        if self.eat(":") {
            return Ok(true);
        }
        if self.eat("P<") {
            self.group_name(start)?;
            return Ok(true);
        }
        if self.eat("P=") {
            return self.back_reference(start);
        }
        if self.eat("(") {
            return self.refuse(start, "a conditional group is not supported", "write out both cases as alternatives");
        }
        match self.peek() {
            Some('<') => self.refuse(start, "there is no group (?<name>...) in Python", "write (?P<name>...)"),
            Some('-' | 'a'..='z') => self.group_flags(start, may_be_flags),
            _ => {
                let kind: String = self.chars[start..].iter().take(4).collect();
                self.fail(start, format!("there is no group {kind:?} in Python"))
            }
        }
    }

    /// Flags of a group up to its colon, or of the whole pattern up to the parenthesis; false if it is these.
    fn group_flags(&mut self, start: usize, may_be_flags: bool) -> Result<bool> {
        let (mut on, mut off, mut value) = (String::new(), String::new(), true);
        let end = loop {
            let at = self.at;
            match self.next() {
                Some(c @ ('i' | 'm' | 's' | 'x')) if value => on.push(c),
                Some(c @ ('i' | 'm' | 's' | 'x')) => off.push(c),
                Some(c @ ('a' | 'u')) if value => on.push(c),
                Some('-') if value => value = false,
                Some(c @ (':' | ')')) => break c,
                Some('a' | 'u') => return self.fail(at, "the flags a and u cannot be turned off"),
                Some('L') => return self.fail(at, "the flag L is for bytes"),
                Some(c) => return self.fail(at, format!("there is no flag {c:?} in Python")),
                None => return self.refuse(start, "the group is not closed", "a literal parenthesis is written \\("),
            }
        };
        if on.contains('a') && (on.contains('u')) {
            return self.fail(start, "the flags a and u exclude each other");
        }
        if on.chars().any(|c| off.contains(c)) {
            return self.fail(start, "a flag is turned on and off");
        }
        if !value && (off.is_empty() || end == ')') {
            return self.refuse(start, "after the minus flags and a colon are missing", "write (?-i:...)");
        }
        if end == ')' && !may_be_flags {
            return self.refuse(
                start,
                "flags for the whole pattern stand only at its very beginning",
                "write a group with flags, (?i:...)",
            );
        }
        for (letters, value) in [(on, true), (off, false)] {
            for letter in letters.chars() {
                match letter {
                    'i' => self.flags.ignore_case = value,
                    'm' => self.flags.multiline = value,
                    's' => self.flags.dot_all = value,
                    'x' => self.flags.verbose = value,
                    'a' => self.flags.ascii = true,
                    _ => self.flags.ascii = false,
                }
            }
        }
        Ok(end == ':')
    }

    fn group_name(&mut self, start: usize) -> Result<()> {
        let from = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.at += 1;
        }
        let name: String = self.chars[from..self.at].iter().collect();
        if !self.eat(">") || name.is_empty() || name.starts_with(|c: char| c.is_numeric()) {
            return self.fail(start, "the name of the group is not an identifier");
        }
        if self.names.contains(&name) {
            return self.fail(start, format!("two groups have the name {name:?}"));
        }
        self.names.push(name);
        Ok(())
    }

    fn back_reference<T>(&self, start: usize) -> Result<T> {
        self.refuse(
            start,
            "a back-reference is not supported: texts that repeat an earlier part are no regular language",
            "write out what may be repeated",
        )
    }
}
