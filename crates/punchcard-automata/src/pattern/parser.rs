//! The parser: ECMA-262 with the `u` flag, and on request what real schemas write beyond it.
//!
//! Unicode mode refuses much that older engines let pass. Outside of strict mode, such spellings are read where every
//! engine that takes them agrees on the meaning (`\-`, `\@`, a lone `{` or `]`, `[\w-.]`, a leading `(?i)`, `(?P<name>...)`);
//! where engines differ (`\Z`, `\h`, `x{,5}`), or the language is not regular or not said by ECMA-262 (`\1`, `(?>...)`,
//! `a++`), the error names the construct and says what to write instead.

use super::atoms::Atom;
use super::class;
use super::limits::{self, MAX_MIN_LEN};
use super::syntax::{NodeId, Tree};
use super::{Options, PatternError};
use crate::charset::CharSet;
use crate::languages::UNBOUNDED;
use hashbrown::HashMap;

pub(super) type Result<T> = std::result::Result<T, PatternError>;

#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub ignore_case: bool,
    multiline: bool,
    dot_all: bool,
    verbose: bool,
}

/// A part of a sequence. What a boundary becomes depends on its neighbours.
enum Item {
    Node(NodeId),
    Boundary { negated: bool, ignore_case: bool },
}

pub(super) struct Parser<'a> {
    pub chars: Vec<char>,
    pub at: usize,
    depth: usize,
    pub options: &'a Options,
    pub flags: Flags,
    /// Names of the groups that may take part in the same match as the next group.
    names: Vec<String>,
    /// The sets of properties that were named before.
    pub properties: HashMap<String, CharSet>,
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
    };
    let mut parser = Parser {
        chars,
        at: 0,
        depth: 0,
        options,
        flags,
        names: Vec::new(),
        properties: HashMap::new(),
        tree: Tree::default(),
    };
    let root = parser.pattern()?;
    Ok((parser.tree, root))
}

impl Parser<'_> {
    pub fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let len = text.chars().count();
        let found = self.chars.get(self.at..self.at + len).is_some_and(|x| x.iter().copied().eq(text.chars()));
        self.at += if found { len } else { 0 };
        found
    }

    pub fn fail<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        Err(PatternError::new(at, message))
    }

    pub fn refuse<T>(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) -> Result<T> {
        Err(PatternError::new(at, message).with_hint(hint))
    }

    /// Something that Unicode mode does not allow and every engine that does reads alike.
    pub fn lenient(&self, at: usize, what: &str) -> Result<()> {
        if self.options.strict { self.fail(at, format!("{what} is not allowed in Unicode mode")) } else { Ok(()) }
    }

    fn pattern(&mut self) -> Result<NodeId> {
        // Flags for the whole pattern, as Python, PCRE, Java and Rust write them.
        while self.chars[self.at..].starts_with(&['(', '?']) {
            let start = self.at;
            self.at += 2;
            match self.flag_list()? {
                Some((flags, ')')) => {
                    self.lenient(start, "an inline flag")?;
                    self.at += 1;
                    self.flags = flags;
                }
                _ => {
                    self.at = start;
                    break;
                }
            }
        }
        let root = self.alternation()?;
        match self.peek() {
            None => Ok(root),
            _ => self.refuse(self.at, "a closing parenthesis without an opening one", "a literal one is written \\)"),
        }
    }

    fn alternation(&mut self) -> Result<NodeId> {
        let start = self.at;
        let outer = self.names.len();
        let (mut parts, mut pool) = (Vec::new(), Vec::new());
        loop {
            parts.push(self.sequence()?);
            // Alternatives may use a name twice, as only one of them takes part in a match.
            pool.extend(self.names.drain(outer..));
            if self.peek() != Some('|') {
                break;
            }
            self.at += 1;
        }
        self.names.extend(pool);
        let node = self.tree.alternation(parts);
        self.bounded(start, node)
    }

    fn bounded(&self, at: usize, node: NodeId) -> Result<NodeId> {
        limits::bounded(&self.tree, at, node)
    }

    fn sequence(&mut self) -> Result<NodeId> {
        let start = self.at;
        let mut items = Vec::new();
        loop {
            self.skip_comments();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some(_) => {
                    let item = self.term()?;
                    items.push(item);
                }
            }
        }
        let nodes: Vec<NodeId> =
            items.iter().filter_map(|i| if let Item::Node(n) = i { Some(*n) } else { None }).collect();
        // What stands beside a boundary decides what it is; a few neighbours on each side are enough.
        const NEAR: usize = 8;
        let (mut parts, mut seen) = (Vec::with_capacity(items.len()), 0usize);
        for item in items {
            match item {
                Item::Node(node) => {
                    parts.push(node);
                    seen += 1;
                }
                Item::Boundary { negated, ignore_case } => {
                    let before = &nodes[seen.saturating_sub(NEAR)..seen];
                    let after = &nodes[seen..nodes.len().min(seen + NEAR)];
                    let node = self.tree.boundary(negated, &self.word(ignore_case), before, after);
                    parts.push(node);
                }
            }
        }
        let node = self.tree.concat(parts);
        self.bounded(start, node)
    }

    /// Skips what verbose mode ignores.
    fn skip_comments(&mut self) {
        while self.flags.verbose {
            match self.peek() {
                Some(c) if c.is_whitespace() => self.at += 1,
                Some('#') => while self.next().is_some_and(|c| c != '\n') {},
                _ => break,
            }
        }
    }

    fn term(&mut self) -> Result<Item> {
        let start = self.at;
        let Some(c) = self.next() else { return Ok(Item::Node(self.tree.empty())) };
        // Whether the term is an assertion, which takes no quantifier, and whether older engines let it take one.
        let (mut assertion, mut tolerated) = (false, false);
        let node = match c {
            '^' => {
                assertion = true;
                let start = self.tree.start();
                self.line_edge(start, true)
            }
            '$' => {
                assertion = true;
                let end = self.tree.end();
                self.line_edge(end, false)
            }
            '(' => {
                let (node, look) = self.group(start)?;
                assertion = look.is_some();
                tolerated = look == Some(false);
                node
            }
            '[' => {
                let set = self.class(start)?;
                self.tree.set(set)
            }
            '.' => {
                let set = if self.flags.dot_all { CharSet::any() } else { class::line_ends().complement() };
                self.tree.set(set)
            }
            '\\' => match self.peek() {
                Some(b @ ('b' | 'B')) => {
                    self.at += 1;
                    let item = Item::Boundary { negated: b == 'B', ignore_case: self.flags.ignore_case };
                    self.no_quantifier(start)?;
                    return Ok(item);
                }
                Some(edge @ ('A' | 'z')) => {
                    self.lenient(start, &format!("\\{edge}"))?;
                    self.at += 1;
                    assertion = true;
                    if edge == 'A' { self.tree.start() } else { self.tree.end() }
                }
                _ => match self.escape(start, false)? {
                    Atom::Char(c) => self.literal(c),
                    Atom::Set(set) if self.flags.ignore_case => self.tree.set(class::close_over_case(&set)),
                    Atom::Set(set) => self.tree.set(set),
                },
            },
            '*' | '+' | '?' => {
                return self.refuse(
                    start,
                    format!("there is nothing to repeat before {c:?}"),
                    format!("a literal one is written \\{c}"),
                );
            }
            '{' => {
                self.at = start;
                if self.counts()?.is_some() {
                    return self.refuse(start, "there is nothing to repeat before '{'", "a literal one is written \\{");
                }
                self.at = start + 1;
                self.lenient(start, "a lone '{'")?;
                self.literal('{' as u32)
            }
            '}' | ']' => {
                self.lenient(start, &format!("a lone {c:?}"))?;
                self.literal(c as u32)
            }
            _ => self.literal(c as u32),
        };
        if assertion && !tolerated {
            self.no_quantifier(start)?;
            return Ok(Item::Node(node));
        }
        let Some((min, max)) = self.quantifier()? else { return Ok(Item::Node(node)) };
        if tolerated {
            self.lenient(start, "a quantified look-ahead")?;
        }
        let node = limits::repeat(&mut self.tree, start, node, min, max)?;
        Ok(Item::Node(node))
    }

    /// `^` or `$`: an edge of the text, and in multi-line mode of a line.
    fn line_edge(&mut self, edge: NodeId, behind: bool) -> NodeId {
        if !self.flags.multiline {
            return edge;
        }
        let ends = self.tree.set(class::line_ends());
        let beside = self.tree.look(behind, false, ends);
        self.tree.alternation(vec![edge, beside])
    }

    fn literal(&mut self, c: u32) -> NodeId {
        let set = CharSet::new([(c, c)]);
        let set = if self.flags.ignore_case { class::close_over_case(&set) } else { set };
        self.tree.set(set)
    }

    pub fn word(&self, ignore_case: bool) -> CharSet {
        let word = class::ascii_word();
        if ignore_case { class::close_over_case(&word) } else { word }
    }

    // ---- quantifiers ----

    fn no_quantifier(&mut self, start: usize) -> Result<()> {
        let at = self.at;
        if self.quantifier()?.is_none() {
            return Ok(());
        }
        let what: String = self.chars[start..at].iter().take(12).collect();
        self.refuse(at, format!("the assertion {what} takes no quantifier"), "leave the quantifier out")
    }

    fn quantifier(&mut self) -> Result<Option<(u32, u32)>> {
        self.skip_comments();
        let start = self.at;
        let counts = match self.peek() {
            Some('*') => (0, UNBOUNDED),
            Some('+') => (1, UNBOUNDED),
            Some('?') => (0, 1),
            Some('{') => match self.counts()? {
                Some(counts) => {
                    self.at -= 1;
                    counts
                }
                None => {
                    self.at = start;
                    return Ok(None);
                }
            },
            _ => return Ok(None),
        };
        self.at += 1;
        match self.peek() {
            // A lazy quantifier finds another match first, but the same texts.
            Some('?') => self.at += 1,
            Some('+') => {
                return self.refuse(
                    self.at,
                    "a possessive quantifier is not ECMA-262",
                    "leave the second '+' out, or write a literal one as \\+",
                );
            }
            _ => {}
        }
        Ok(Some(counts))
    }

    /// `{m}`, `{m,}` or `{m,n}`, or nothing (then the place is not restored).
    fn counts(&mut self) -> Result<Option<(u32, u32)>> {
        let start = self.at;
        self.at += 1;
        let min = self.number();
        let (min, max) = match (min, self.next()) {
            (Some(min), Some('}')) => (min, min),
            (None, Some(',')) => {
                if self.number().is_some() && self.peek() == Some('}') {
                    return self.refuse(
                        start,
                        "a repetition without a lower bound means different things to different engines",
                        "write {0,n}, or \\{ for a literal brace",
                    );
                }
                return Ok(None);
            }
            (Some(min), Some(',')) => {
                let max = self.number();
                if self.next() != Some('}') {
                    return Ok(None);
                }
                (min, max.unwrap_or(u64::MAX))
            }
            _ => return Ok(None),
        };
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

    // ---- groups ----

    /// The rest of a group after its parenthesis; and if it is an assertion, whether that looks behind.
    fn group(&mut self, start: usize) -> Result<(NodeId, Option<bool>)> {
        if self.depth >= self.options.max_nesting {
            return self.refuse(
                start,
                format!("groups nest deeper than {}", self.options.max_nesting),
                "raise max_nesting if this pattern is meant",
            );
        }
        let flags = self.flags;
        let look = if self.eat("?=") {
            Some((false, false))
        } else if self.eat("?!") {
            Some((false, true))
        } else if self.eat("?<=") {
            Some((true, false))
        } else if self.eat("?<!") {
            Some((true, true))
        } else {
            None
        };
        if look.is_none() && self.eat("?") {
            self.group_kind(start)?;
        }
        self.depth += 1;
        let mut node = self.alternation()?;
        self.depth -= 1;
        self.flags = flags;
        if self.next() != Some(')') {
            return self.refuse(start, "the group is not closed", "a literal parenthesis is written \\(");
        }
        if let Some((behind, negated)) = look {
            node = self.tree.look(behind, negated, node);
        }
        Ok((self.bounded(start, node)?, look.map(|(behind, _)| behind)))
    }

    /// What comes after `(?`, up to where the content of the group begins.
    fn group_kind(&mut self, start: usize) -> Result<()> {
        if self.eat(":") {
            return Ok(());
        }
        if self.eat("<") {
            return self.group_name(start);
        }
        if self.eat("P<") {
            self.lenient(start, "a group (?P<name>...)")?;
            return self.group_name(start);
        }
        if self.eat(">") {
            return self.refuse(start, "an atomic group is not ECMA-262", "write a plain group (?:...)");
        }
        if self.eat("P=") {
            return self.back_reference(start);
        }
        if let Some((flags, end)) = self.flag_list()? {
            if end == ':' {
                self.at += 1;
                self.flags = flags;
                return Ok(());
            }
            return self.refuse(
                start,
                "inline flags are understood only at the very beginning of a pattern",
                "write a group with flags, (?i:...)",
            );
        }
        let kind: String = self.chars[start..].iter().take(4).collect();
        let what = match self.peek() {
            Some('(') => "a conditional group",
            Some('#') => "a comment",
            Some('|') => "a branch reset group",
            Some('R' | '&' | 'P' | '0'..='9') => "recursion",
            Some('\'') => "a group name in quotes",
            _ => "this kind of group",
        };
        self.fail(start, format!("{what} ({kind:?}) is not ECMA-262"))
    }

    fn group_name(&mut self, start: usize) -> Result<()> {
        let from = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '\u{200C}' | '\u{200D}')) {
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

    /// Letters of flags up to `:` or `)`, which is left to be read: the flags from there on.
    fn flag_list(&mut self) -> Result<Option<(Flags, char)>> {
        let (start, mut flags, mut value) = (self.at, self.flags, true);
        let mut seen = String::new();
        loop {
            let at = self.at;
            match self.next() {
                Some(c @ ('i' | 'm' | 's')) => {
                    if seen.contains(c) {
                        return self.fail(at, format!("the flag {c} stands twice"));
                    }
                    seen.push(c);
                    match c {
                        'i' => flags.ignore_case = value,
                        'm' => flags.multiline = value,
                        _ => flags.dot_all = value,
                    }
                }
                Some('x') => {
                    self.lenient(at, "the flag x")?;
                    flags.verbose = value;
                    seen.push('x');
                }
                // Unicode is what this is anyway.
                Some('u') if !self.options.strict && value => seen.push('u'),
                Some('-') if value => value = false,
                Some(c @ (':' | ')')) if !seen.is_empty() => {
                    self.at = at;
                    return Ok(Some((flags, c)));
                }
                Some(c) if !seen.is_empty() && c.is_ascii_alphabetic() => {
                    return self.fail(at, format!("the flag {c} is not supported here"));
                }
                _ => {
                    self.at = start;
                    return Ok(None);
                }
            }
        }
    }

    pub fn back_reference<T>(&self, start: usize) -> Result<T> {
        self.refuse(
            start,
            "a back-reference is not supported: texts that repeat an earlier part are no regular language",
            "write out what may be repeated",
        )
    }
}
