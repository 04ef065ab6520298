//! What each name of a grammar stands for, and whether all of that can be.
//!
//! Entries are taken in order, as `%override` and `%extend` refer to what came before; references may come in any order.

use crate::error::{GrammarError, Spot};
use crate::lark::common;
use crate::lark::syntax::{Attributes, Definition, Item, ItemKind, Mode, Node, NodeKind};
use crate::similar::nearest;
use std::collections::{BTreeMap, HashSet};

/// The names of a grammar.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) entries: BTreeMap<String, Entry<'a>>,
    /// What may stand between terminals.
    pub(super) ignored: Vec<&'a Node>,
}

/// A rule, a template or a terminal.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) at: usize,
    pub(super) is_terminal: bool,
    pub(super) parameters: &'a [String],
    /// Imported terminals have none.
    pub(super) attributes: Option<&'a Attributes>,
    /// Its alternatives: the body, and what extends it.
    pub(super) bodies: Vec<Body<'a>>,
}

/// Where alternatives of an entry come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    Written(&'a Node),
    /// The regular expression of a common terminal.
    Common(&'static str),
}

impl Scope<'_> {
    /// Whether a terminal, or one that it is made of, repeats something lazily.
    pub(super) fn is_lazy(&self, name: &str) -> bool {
        let (mut open, mut seen) = (vec![name], HashSet::new());
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let bodies = self.entries.get(name).map(|entry| entry.bodies.as_slice()).unwrap_or_default();
            let mut nodes: Vec<&Node> = bodies
                .iter()
                .filter_map(|body| match body {
                    Body::Written(node) => Some(*node),
                    Body::Common(_) => None,
                })
                .collect();
            while let Some(node) = nodes.pop() {
                match &node.kind {
                    NodeKind::Sequence(inner) | NodeKind::Choice(inner) => nodes.extend(inner),
                    NodeKind::Repeat { body, .. } => nodes.push(body),
                    NodeKind::Terminal(name) => open.push(name),
                    NodeKind::Regex { pattern, .. } if repeats_lazily(pattern) => return true,
                    // What is in an intersection or complement is a set of texts, not a way to read.
                    _ => {}
                }
            }
        }
        false
    }
}

/// Whether a regular expression repeats something as few times as it can.
pub(super) fn repeats_lazily(pattern: &str) -> bool {
    let (mut in_class, mut escaped, mut repeats, mut before) = (false, false, false, ' ');
    for c in pattern.chars() {
        match c {
            _ if escaped => (escaped, repeats) = (false, false),
            '\\' => escaped = true,
            ']' if in_class => (in_class, repeats) = (false, false),
            _ if in_class => {}
            '[' => in_class = true,
            '?' if repeats => return true,
            // The question mark of a group repeats nothing.
            '?' if before == '(' => {}
            '*' | '+' | '?' | '}' => repeats = true,
            _ => repeats = false,
        }
        before = c;
    }
    false
}

/// Collects the entries, and checks that names are defined once, are defined at all, and that terminals do not contain
/// themselves.
pub(super) fn gather<'a>(text: &str, items: &'a [Item]) -> Result<Scope<'a>, GrammarError> {
    let mut scope = Scope::default();
    for item in items {
        match &item.kind {
            ItemKind::Ignore(node) => scope.ignored.push(node),
            ItemKind::Import { name, local } => scope.import(text, item.at, name, local)?,
            ItemKind::Define(Mode::New, definition) => {
                scope.check_new(text, definition.at, &definition.name)?;
                scope.entries.insert(definition.name.clone(), entry(definition));
            }
            ItemKind::Define(Mode::Override, definition) => {
                scope.earlier(text, definition, "overridden")?;
                scope.entries.insert(definition.name.clone(), entry(definition));
            }
            ItemKind::Define(Mode::Extend, definition) => scope.extend(text, definition)?,
        }
    }
    scope.check_references(text)?;
    scope.check_recursion(text)?;
    Ok(scope)
}

fn entry(definition: &Definition) -> Entry<'_> {
    Entry {
        at: definition.at,
        is_terminal: definition.is_terminal,
        parameters: &definition.parameters,
        attributes: Some(&definition.attributes),
        bodies: vec![Body::Written(&definition.body)],
    }
}

impl<'a> Scope<'a> {
    fn check_new(&self, text: &str, at: usize, name: &str) -> Result<(), GrammarError> {
        let Some(earlier) = self.entries.get(name) else { return Ok(()) };
        let line = Spot::at(text, earlier.at).line;
        Err(GrammarError::at(text, at, format!("{name:?} is defined a second time; the first is on line {line}"))
            .with_hint(format!("Rename one, or write %override {name} or %extend {name}")))
    }

    /// Lark takes the same import twice.
    fn import(&mut self, text: &str, at: usize, name: &str, local: &str) -> Result<(), GrammarError> {
        let Some(pattern) = common::pattern(name) else { return Ok(()) };
        let again = self
            .entries
            .get(local)
            .is_some_and(|entry| matches!(entry.bodies.as_slice(), [Body::Common(earlier)] if *earlier == pattern));
        if again {
            return Ok(());
        }
        self.check_new(text, at, local)?;
        let bodies = vec![Body::Common(pattern)];
        self.entries
            .insert(local.to_string(), Entry { at, is_terminal: true, parameters: &[], attributes: None, bodies });
        Ok(())
    }

    fn earlier(&mut self, text: &str, definition: &Definition, what: &str) -> Result<&mut Entry<'a>, GrammarError> {
        let name = &definition.name;
        self.entries.get_mut(name).ok_or_else(|| {
            GrammarError::at(text, definition.at, format!("{name:?} is {what}, but not defined before"))
                .with_hint("Define it first, or define it here without the directive")
        })
    }

    fn extend(&mut self, text: &str, definition: &'a Definition) -> Result<(), GrammarError> {
        let entry = self.earlier(text, definition, "extended")?;
        let attributes = &definition.attributes;
        if attributes.lazy.is_some()
            || attributes.stop.is_some()
            || attributes.max_tokens.is_some()
            || attributes.capture.is_some()
        {
            return Err(GrammarError::at(text, definition.at, "An extension has no attributes of its own")
                .with_hint("Write them where the name is defined"));
        }
        if entry.parameters != definition.parameters {
            return Err(GrammarError::at(text, definition.at, "An extension has the parameters of what it extends")
                .with_hint(format!("They are {{{}}}", entry.parameters.join(", "))));
        }
        entry.bodies.push(Body::Written(&definition.body));
        Ok(())
    }

    // ------------------------------------------------------------------ references

    fn check_references(&self, text: &str) -> Result<(), GrammarError> {
        let none = HashSet::new();
        for node in &self.ignored {
            self.check_names(text, node, &none)?;
        }
        for entry in self.entries.values() {
            let parameters = entry.parameters.iter().map(String::as_str).collect();
            for node in entry.written() {
                self.check_names(text, node, &parameters)?;
            }
        }
        Ok(())
    }

    fn check_names(&self, text: &str, node: &Node, parameters: &HashSet<&str>) -> Result<(), GrammarError> {
        let (kind, name) = match &node.kind {
            NodeKind::Rule(name) | NodeKind::Template { name, .. } => ("rule", name),
            NodeKind::Terminal(name) => ("terminal", name),
            _ => ("", &String::new()),
        };
        if !kind.is_empty() && !self.entries.contains_key(name) && !parameters.contains(name.as_str()) {
            let error = GrammarError::at(text, node.at, format!("The {kind} {name:?} is not defined"));
            let known = self.entries.keys().map(String::as_str).chain(parameters.iter().copied());
            return Err(error.with_hint(match nearest(name, known) {
                Some(near) => format!("Did you mean {near:?}?"),
                None if common::pattern(name).is_some() => format!("Write %import common.{name}"),
                None => format!("Define it: {name}: ..."),
            }));
        }
        children(node).try_for_each(|child| self.check_names(text, child, parameters))
    }

    // ------------------------------------------------------------------ recursion

    /// Terminals are regular: none may contain itself. Walks the references without recursion, as chains of terminals may
    /// be as long as the grammar.
    fn check_recursion(&self, text: &str) -> Result<(), GrammarError> {
        let mut done: HashSet<&str> = HashSet::new();
        for (name, entry) in self.entries.iter().filter(|(_, entry)| entry.is_terminal) {
            let mut path = vec![(name.as_str(), entry.terminals())];
            let mut on_path = HashSet::from([name.as_str()]);
            while let Some((name, references)) = path.last_mut() {
                let Some((reference, at)) = references.pop() else {
                    done.insert(name);
                    on_path.remove(name);
                    path.pop();
                    continue;
                };
                if on_path.contains(reference) {
                    return Err(recursive(text, at, &path, reference));
                }
                if let Some(entry) = self.entries.get(reference).filter(|_| !done.contains(reference)) {
                    path.push((reference, entry.terminals()));
                    on_path.insert(reference);
                }
            }
        }
        Ok(())
    }
}

/// Terminals that are yet to be visited, and where they are named.
type References<'a> = Vec<(&'a str, usize)>;

fn recursive(text: &str, at: usize, path: &[(&str, References<'_>)], name: &str) -> GrammarError {
    const MOST: usize = 8;
    let mut cycle: Vec<&str> = path.iter().map(|(name, _)| *name).skip_while(|other| *other != name).collect();
    if cycle.len() > MOST {
        cycle.splice(MOST / 2..cycle.len() - MOST / 2, ["..."]);
    }
    let message = format!("The terminal {name:?} contains itself: {} -> {name}", cycle.join(" -> "));
    GrammarError::at(text, at, message).with_hint("Only rules may be recursive; write its name in lower case")
}

impl<'a> Entry<'a> {
    /// What is written in it, attributes included.
    fn written(&self) -> impl Iterator<Item = &'a Node> {
        let bodies = self.bodies.iter().filter_map(|body| match body {
            Body::Written(node) => Some(*node),
            Body::Common(_) => None,
        });
        bodies.chain(self.attributes.and_then(|attributes| attributes.stop.as_ref()))
    }

    fn terminals(&self) -> References<'a> {
        let mut found = Vec::new();
        self.written().for_each(|node| terminals(node, &mut found));
        found
    }
}

fn terminals<'a>(node: &'a Node, found: &mut References<'a>) {
    if let NodeKind::Terminal(name) = &node.kind {
        found.push((name, node.at));
    }
    children(node).for_each(|child| terminals(child, found));
}

/// The parts of a node; a nested grammar is a scope of its own.
fn children(node: &Node) -> impl Iterator<Item = &Node> {
    let nodes = match &node.kind {
        NodeKind::Sequence(nodes)
        | NodeKind::Choice(nodes)
        | NodeKind::And(nodes)
        | NodeKind::Template { arguments: nodes, .. } => nodes.as_slice(),
        NodeKind::Repeat { body, .. } | NodeKind::Not(body) => std::slice::from_ref(body.as_ref()),
        _ => &[],
    };
    nodes.iter()
}
