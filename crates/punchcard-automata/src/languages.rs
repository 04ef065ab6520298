//! The store of hash-consed regular expressions, and their simplifying constructors.
//!
//! Equal ids are equal expressions, and the constructors normalise (associativity, commutativity, idempotence, absorbing
//! elements, merged counters), so that the derivatives of one expression are finitely many and usually few.

use crate::charset::CharSet;
use crate::derivative::{Memory, Transitions};
use crate::machine::Machine;
use crate::texts::{List, SHORT};
use crate::work;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

pub(crate) type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A language: the id of an expression in [`Languages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(pub(crate) u32);

impl Language {
    /// The language without any text.
    pub const EMPTY: Language = Language(0);
    /// The language of the empty text alone.
    pub const EPSILON: Language = Language(1);
    /// The language of all texts.
    pub const ALL: Language = Language(2);

    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// No upper bound of a repetition.
pub const UNBOUNDED: u32 = u32::MAX;

/// Which way a zero-width assertion looks, and whether it wants a match or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Look {
    /// Backwards, at the text before this point.
    pub behind: bool,
    /// The assertion holds where the language does *not* match.
    pub negated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Empty,
    Epsilon,
    /// One character of a set.
    Set(u32),
    /// Right-nested: the left part is never a concatenation.
    Concat(Language, Language),
    /// Sorted, at least two.
    Union(Box<[Language]>),
    /// Sorted, at least two.
    And(Box<[Language]>),
    Not(Language),
    Repeat(Language, u32, u32),
    /// The rests, from the `depth`-th byte on, of the texts `lo..hi` of a sorted list: a trie that is never built.
    Texts {
        list: u32,
        lo: u32,
        hi: u32,
        depth: u32,
    },
    /// A zero-width assertion. Ahead: the rest of the text is in `inner`. Behind: `inner` is what is left of the language
    /// of the text before this point, so it holds where `inner` has the empty text.
    Look(Look, Language),
    /// Only at the end of the language of a look-behind that itself looks ahead, before `ALL`: the point from which it
    /// looks back. What follows this point then sees the text after it.
    Here,
    /// A state of a machine that was registered.
    Machine(u32, Arc<[u8]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Has the empty text (assertions evaluated with nothing left to read).
    pub nullable: bool,
    /// Built without complement, intersection and assertions: empty only if it is `EMPTY`.
    pub plain: bool,
    /// Holds an assertion that looks back.
    pub looks_behind: bool,
    /// Holds any assertion.
    pub looks: bool,
    /// Holds an assertion that looks ahead.
    pub looks_ahead: bool,
    /// Holds the point of a look-behind around it.
    pub here: bool,
    /// No text is shorter (a lower bound; exact for plain expressions without machines).
    pub min_len: u32,
    /// No text is longer (an upper bound; `UNBOUNDED` if not known).
    pub max_len: u32,
}

/// A limit was passed while languages were combined: what, and how much was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The name of the limit.
    pub limit: &'static str,
    /// Its value.
    pub value: usize,
}

/// The store of languages. Ids of one store mean nothing in another.
#[derive(Debug)]
pub struct Languages {
    pub(crate) nodes: Vec<Node>,
    pub(crate) facts: Vec<Facts>,
    /// A structural hash, equal for equal languages of different stores (a cache key across stores).
    prints: Vec<u64>,
    ids: FxMap<Node, Language>,
    pub(crate) sets: Vec<CharSet>,
    set_ids: FxMap<CharSet, u32>,
    pub(crate) lists: Vec<List>,
    list_ids: FxMap<Arc<[Box<str>]>, u32>,
    /// Selections of the texts of a list.
    selection_ids: FxMap<(u32, Arc<[u64]>), u32>,
    pub(crate) machines: Vec<Arc<dyn Machine>>,
    /// Hashes of their names.
    pub(crate) machine_prints: Vec<u64>,
    pub(crate) transitions: Vec<Option<Arc<Transitions>>>,
    /// Single transitions of states that have no table, and how many each has.
    pub(crate) steps: FxMap<(Language, u32), Language>,
    pub(crate) asked: FxMap<Language, u8>,
    pub(crate) viable: FxMap<Language, bool>,
    pub(crate) endless: FxMap<Language, bool>,
    pub(crate) memory: Memory,
    /// The characters that can be written at all; `None` for every one.
    pub(crate) alphabet: Option<CharSet>,
    /// The most expressions the store may hold.
    pub max_states: usize,
    /// The most steps that one search for a text may take. A million take from a tenth of a second to one.
    pub max_work: u64,
    /// The parts of all unions and intersections, in eights: large ones count as several expressions.
    pub(crate) weight: usize,
    /// How many parts unions and intersections were built from so far.
    pub(crate) work: u64,
    /// Bytes of what the lists and tables point to.
    pub(crate) heap: usize,
}

impl Default for Languages {
    fn default() -> Self {
        Self::new()
    }
}

impl Languages {
    /// An empty store.
    pub fn new() -> Self {
        Self::over(None)
    }

    /// An empty store of languages over some characters only; `None` for every character. No text has others.
    pub fn over(alphabet: Option<CharSet>) -> Self {
        let mut store = Languages {
            nodes: Vec::new(),
            facts: Vec::new(),
            prints: Vec::new(),
            ids: FxMap::default(),
            sets: Vec::new(),
            set_ids: FxMap::default(),
            lists: Vec::new(),
            list_ids: FxMap::default(),
            selection_ids: FxMap::default(),
            machines: Vec::new(),
            machine_prints: Vec::new(),
            transitions: Vec::new(),
            steps: FxMap::default(),
            asked: FxMap::default(),
            viable: FxMap::default(),
            endless: FxMap::default(),
            memory: Memory::default(),
            alphabet,
            max_states: 2_000_000,
            max_work: 5_000_000,
            weight: 0,
            work: 0,
            heap: 0,
        };
        store.intern(Node::Empty);
        store.intern(Node::Epsilon);
        // ALL is spelled as the complement of EMPTY and declared plain, so that it absorbs wherever it appears.
        store.intern(Node::Not(Language::EMPTY));
        store
    }

    /// How many expressions the store holds.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the store holds nothing (never, as it starts with the constants).
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether more expressions were built than `max_states` allows.
    pub fn check_limit(&self) -> Result<(), LimitExceeded> {
        if self.nodes.len() + self.weight > self.max_states {
            return Err(LimitExceeded { limit: "max_automaton_states", value: self.max_states });
        }
        Ok(())
    }

    /// An estimate of the bytes that the store holds on the heap.
    pub fn memory_size(&self) -> usize {
        let each = size_of::<Node>() + size_of::<Facts>() + size_of::<u64>() + size_of::<Option<Arc<Transitions>>>();
        let tables = self.ids.allocation_size()
            + self.set_ids.allocation_size()
            + self.list_ids.allocation_size()
            + self.selection_ids.allocation_size()
            + self.steps.allocation_size()
            + self.asked.allocation_size()
            + self.viable.allocation_size()
            + self.endless.allocation_size()
            + self.memory.memory_size();
        self.nodes.capacity() * each + tables + self.heap
    }

    pub(crate) fn node(&self, id: Language) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn facts(&self, id: Language) -> Facts {
        self.facts[id.index()]
    }

    /// Whether the empty text is in the language.
    pub fn is_nullable(&self, id: Language) -> bool {
        self.facts(id).nullable
    }

    /// Whether assertions are left in the language, other than as intersections and complements.
    pub fn looks(&self, id: Language) -> bool {
        self.facts(id).looks
    }

    /// Whether assertions are left in the language that look ahead.
    pub fn looks_ahead(&self, id: Language) -> bool {
        self.facts(id).looks_ahead
    }

    /// Whether the language is built without complements, intersections and assertions.
    pub fn is_plain(&self, id: Language) -> bool {
        self.facts(id).plain
    }

    /// A structural hash that is the same in every store.
    pub fn fingerprint(&self, id: Language) -> u64 {
        self.prints[id.index()]
    }

    /// If the language is a plain run of one set of characters: the set and the bounds of the run.
    pub fn as_run(&self, id: Language) -> Option<(&CharSet, u32, u32)> {
        match self.node(id) {
            Node::Repeat(inner, min, max) => match self.node(*inner) {
                Node::Set(set) => Some((&self.sets[*set as usize], *min, *max)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The parts of a union, as it is written; else the language itself.
    pub fn alternatives(&self, id: Language) -> Vec<Language> {
        match self.node(id) {
            Node::Union(items) => items.to_vec(),
            _ => vec![id],
        }
    }

    /// Bounds, in characters, on the length of the texts: (at least, at most or `UNBOUNDED`).
    pub fn length_bounds(&self, id: Language) -> (u32, u32) {
        (self.facts(id).min_len, self.facts(id).max_len)
    }

    pub(crate) fn intern(&mut self, node: Node) -> Language {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        // Each is held by the list of nodes and by the table of their ids.
        match &node {
            Node::Union(items) | Node::And(items) => {
                self.weight += items.len() / 8;
                self.heap += 2 * size_of_val(&**items);
            }
            Node::Machine(_, state) => self.heap += 16 + state.len(),
            _ => {}
        }
        let id = Language(self.nodes.len() as u32);
        self.facts.push(self.derive_facts(&node));
        self.prints.push(self.print(&node));
        self.ids.insert(node.clone(), id);
        self.nodes.push(node);
        self.transitions.push(None);
        id
    }

    fn print(&self, node: &Node) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        std::mem::discriminant(node).hash(&mut h);
        match node {
            Node::Empty | Node::Epsilon | Node::Here => {}
            Node::Set(s) => self.sets[*s as usize].hash(&mut h),
            Node::Concat(a, b) => (self.fingerprint(*a), self.fingerprint(*b)).hash(&mut h),
            Node::Union(items) | Node::And(items) => {
                // The order of ids differs between stores.
                let mut prints: Vec<u64> = items.iter().map(|&i| self.fingerprint(i)).collect();
                prints.sort_unstable();
                prints.hash(&mut h);
            }
            Node::Not(a) => self.prints.get(a.index()).hash(&mut h),
            Node::Repeat(a, min, max) => (self.fingerprint(*a), min, max).hash(&mut h),
            Node::Texts { list, lo, hi, depth } => {
                self.lists[*list as usize].hash(*lo, *hi, *depth, &mut h);
            }
            Node::Look(look, a) => (look, self.fingerprint(*a)).hash(&mut h),
            Node::Machine(id, state) => (self.machine_prints[*id as usize], state).hash(&mut h),
        }
        // One more round, as the low bits of the hash are used elsewhere.
        h.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }

    fn derive_facts(&self, node: &Node) -> Facts {
        let base = Facts {
            nullable: false,
            plain: true,
            looks_behind: false,
            looks: false,
            looks_ahead: false,
            here: false,
            min_len: 0,
            max_len: 0,
        };
        match node {
            Node::Empty => Facts { min_len: UNBOUNDED, ..base },
            Node::Epsilon => Facts { nullable: true, ..base },
            Node::Set(_) => Facts { min_len: 1, max_len: 1, ..base },
            Node::Concat(a, b) => {
                let (a, b) = (self.facts(*a), self.facts(*b));
                Facts {
                    nullable: a.nullable && b.nullable,
                    plain: a.plain && b.plain,
                    looks_behind: a.looks_behind || b.looks_behind,
                    looks: a.looks || b.looks,
                    looks_ahead: a.looks_ahead || b.looks_ahead,
                    here: a.here || b.here,
                    min_len: a.min_len.saturating_add(b.min_len),
                    max_len: a.max_len.saturating_add(b.max_len),
                }
            }
            Node::Union(items) => {
                items.iter().map(|&i| self.facts(i)).fold(Facts { min_len: UNBOUNDED, ..base }, |x, y| Facts {
                    nullable: x.nullable || y.nullable,
                    plain: x.plain && y.plain,
                    looks_behind: x.looks_behind || y.looks_behind,
                    looks: x.looks || y.looks,
                    looks_ahead: x.looks_ahead || y.looks_ahead,
                    here: x.here || y.here,
                    min_len: x.min_len.min(y.min_len),
                    max_len: x.max_len.max(y.max_len),
                })
            }
            Node::And(items) => items.iter().map(|&i| self.facts(i)).fold(
                Facts { nullable: true, plain: false, max_len: UNBOUNDED, ..base },
                |x, y| Facts {
                    nullable: x.nullable && y.nullable,
                    plain: false,
                    looks_behind: x.looks_behind || y.looks_behind,
                    looks: x.looks || y.looks,
                    looks_ahead: x.looks_ahead || y.looks_ahead,
                    here: x.here || y.here,
                    min_len: x.min_len.max(y.min_len),
                    max_len: x.max_len.min(y.max_len),
                },
            ),
            Node::Not(a) if *a == Language::EMPTY => Facts { nullable: true, plain: true, max_len: UNBOUNDED, ..base },
            Node::Not(a) => {
                let a = self.facts(*a);
                Facts {
                    nullable: !a.nullable,
                    plain: false,
                    looks_behind: a.looks_behind,
                    looks: a.looks,
                    looks_ahead: a.looks_ahead,
                    here: a.here,
                    // Whether a look-behind holds may still change before this place is reached.
                    min_len: u32::from(a.nullable && !a.looks_behind),
                    max_len: UNBOUNDED,
                }
            }
            Node::Repeat(a, min, max) => {
                let a = self.facts(*a);
                Facts {
                    nullable: a.nullable || *min == 0,
                    min_len: if *min == 0 { 0 } else { a.min_len.saturating_mul(*min) },
                    max_len: if a.max_len == 0 { 0 } else { a.max_len.saturating_mul(*max) },
                    ..a
                }
            }
            Node::Texts { list, lo, hi, depth } => {
                let list = &self.lists[*list as usize];
                let (min_len, max_len) = list.bounds(*lo, *hi, *depth);
                // The first text of a slice is always one of the language.
                let nullable = list.slice(*lo, *hi)[0].len() == *depth as usize;
                Facts { nullable, min_len, max_len, ..base }
            }
            Node::Look(look, a) => {
                let a = self.facts(*a);
                Facts {
                    nullable: a.nullable != look.negated,
                    plain: false,
                    looks_behind: look.behind || a.looks_behind,
                    looks: true,
                    looks_ahead: !look.behind || a.looks_ahead,
                    here: false,
                    min_len: 0,
                    max_len: 0,
                }
            }
            Node::Here => Facts { nullable: true, plain: false, here: true, ..base },
            Node::Machine(id, state) => {
                let machine = &self.machines[*id as usize];
                let (nullable, min_len, max_len) = (machine.accepts(state), machine.least(state), machine.most(state));
                Facts { nullable, min_len, max_len, ..base }
            }
        }
    }

    // ---- constructors ----

    /// One character of the set.
    pub fn set(&mut self, set: CharSet) -> Language {
        let set = match &self.alphabet {
            Some(alphabet) => set.intersection(alphabet),
            None => set,
        };
        if set.is_empty() {
            return Language::EMPTY;
        }
        let id = match self.set_ids.get(&set) {
            Some(&id) => id,
            None => {
                let id = self.sets.len() as u32;
                self.set_ids.insert(set.clone(), id);
                self.heap += 2 * size_of_val(set.ranges()) + size_of::<CharSet>();
                self.sets.push(set);
                id
            }
        };
        self.intern(Node::Set(id))
    }

    /// Whether the set is the whole alphabet.
    fn is_alphabet(&self, set: u32) -> bool {
        let set = &self.sets[set as usize];
        self.alphabet.as_ref().map_or_else(|| *set == CharSet::any(), |alphabet| set == alphabet)
    }

    /// Any one character.
    pub fn any_char(&mut self) -> Language {
        self.set(CharSet::any())
    }

    /// Exactly this text.
    pub fn literal(&mut self, text: &str) -> Language {
        // A list of texts looks at all that is left of them for each character; a long text is a sequence of parts.
        const PART: usize = 1_000;
        if text.len() <= PART {
            return self.texts([text]);
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let at = (rest.len().min(PART)..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(at);
            parts.push(self.texts([part]));
            rest = behind;
        }
        self.sequence(parts)
    }

    /// Exactly these texts.
    pub fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Language {
        let mut list: Vec<Box<str>> = texts.into_iter().map(Into::into).collect();
        list.retain(|text| self.can_write(text));
        list.sort_unstable();
        list.dedup();
        self.sorted_texts(list)
    }

    /// Whether all characters of the text are in the alphabet.
    pub fn can_write(&self, text: &str) -> bool {
        self.alphabet.as_ref().is_none_or(|alphabet| text.chars().all(|c| alphabet.contains(c as u32)))
    }

    fn sorted_texts(&mut self, list: Vec<Box<str>>) -> Language {
        let (id, len) = {
            let list: Arc<[Box<str>]> = list.into();
            let id = *self.list_ids.entry(list.clone()).or_insert_with(|| {
                self.lists.push(List::new(list.clone()));
                self.heap += self.lists[self.lists.len() - 1].memory_size();
                (self.lists.len() - 1) as u32
            });
            (id, list.len() as u32)
        };
        self.texts_node(id, 0, len, 0)
    }

    /// Those texts of a language that was built by `texts` whose bits are set, in their order.
    pub fn select(&mut self, texts: Language, bits: impl Into<Arc<[u64]>>) -> Language {
        let &Node::Texts { list, lo: 0, depth: 0, .. } = self.node(texts) else { return texts };
        let bits: Arc<[u64]> = bits.into();
        let len = self.lists[list as usize].len();
        debug_assert!(bits.len() == len.div_ceil(64));
        let key = (list, bits);
        let id = match self.selection_ids.get(&key) {
            Some(&id) => id,
            None => {
                let id = self.lists.len() as u32;
                self.lists.push(self.lists[list as usize].select(key.1.clone()));
                self.weight += key.1.len() / 16;
                self.heap += size_of_val(&*key.1) + size_of::<List>();
                self.selection_ids.insert(key, id);
                id
            }
        };
        self.texts_node(id, 0, len as u32, 0)
    }

    pub(crate) fn texts_node(&mut self, list: u32, lo: u32, hi: u32, depth: u32) -> Language {
        // Of selections with so few texts those that are equal should be one language.
        const FEW: usize = 32;
        let (mut lo, mut hi) = (lo, hi);
        let all = &self.lists[list as usize];
        if all.is_selection() {
            (lo, hi) = all.shrink(lo, hi);
            if all.rests(lo, hi, depth).nth(FEW).is_none() {
                let rests = all.rests(lo, hi, depth).map(Into::into).collect();
                return self.sorted_texts(rests);
            }
        }
        if lo == hi {
            return Language::EMPTY;
        }
        if hi - lo == 1 && all.slice(lo, hi)[0].len() == depth as usize {
            return Language::EPSILON;
        }
        self.intern(Node::Texts { list, lo, hi, depth })
    }

    /// The texts of a language that was built by `texts`, if it still is one.
    pub fn as_texts(&self, id: Language) -> Option<Vec<&str>> {
        match self.node(id) {
            Node::Empty => Some(Vec::new()),
            Node::Epsilon => Some(vec![""]),
            Node::Texts { list, lo, hi, depth } => Some(self.lists[*list as usize].rests(*lo, *hi, *depth).collect()),
            _ => None,
        }
    }

    /// Texts of `a` followed by texts of `b`.
    pub fn concat(&mut self, a: Language, b: Language) -> Language {
        if a == Language::EMPTY || b == Language::EMPTY {
            return Language::EMPTY;
        }
        if a == Language::EPSILON {
            return b;
        }
        if b == Language::EPSILON {
            return a;
        }
        // The spine of `a` is copied in a loop: it may be as long as a pattern.
        let (mut heads, mut at) = (Vec::new(), a);
        while let Node::Concat(first, rest) = *self.node(at) {
            heads.push(first);
            at = rest;
        }
        let mut tail =
            if at == Language::ALL && self.starts_with_all(b) { b } else { self.intern(Node::Concat(at, b)) };
        while let Some(first) = heads.pop() {
            tail = self.intern(Node::Concat(first, tail));
        }
        tail
    }

    fn starts_with_all(&self, id: Language) -> bool {
        id == Language::ALL || matches!(*self.node(id), Node::Concat(Language::ALL, _))
    }

    /// The parts one after the other.
    pub fn sequence(&mut self, parts: impl IntoIterator<Item = Language, IntoIter: DoubleEndedIterator>) -> Language {
        parts.into_iter().rev().fold(Language::EPSILON, |tail, part| self.concat(part, tail))
    }

    /// Texts in any of the languages.
    pub fn union(&mut self, items: impl IntoIterator<Item = Language>) -> Language {
        let mut list = Vec::new();
        for item in items {
            match self.node(item) {
                Node::Empty => {}
                Node::Union(inner) => list.extend_from_slice(inner),
                _ => list.push(item),
            }
        }
        self.work += 1 + list.len() as u64;
        work::count(1 + list.len() as u64);
        if list.len() > 1 {
            list.sort_unstable();
            list.dedup();
            if list.contains(&Language::ALL) {
                return Language::ALL;
            }
            self.merge_alternatives(&mut list);
            if list.contains(&Language::ALL) {
                return Language::ALL;
            }
        }
        match list.as_slice() {
            [] => Language::EMPTY,
            [one] => *one,
            _ => self.intern(Node::Union(list.into())),
        }
    }

    /// Joins alternatives that one simpler expression covers: sets of one character, and counters of the same body
    /// before the same tail whose ranges touch. Without the latter, a counter under an unanchored search would leave one
    /// alternative for every place where the match may have begun.
    fn merge_alternatives(&mut self, list: &mut Vec<Language>) {
        let mut set: Option<CharSet> = None;
        let mut runs: FxMap<(Language, Language), Vec<(u32, u32)>> = FxMap::default();
        let (mut sets, mut counters) = (0, 0);
        for &item in list.iter() {
            match self.split_counter(item) {
                Some((body, tail, min, max)) => {
                    runs.entry((body, tail)).or_default().push((min, max));
                    counters += 1;
                }
                None => {
                    if let Node::Set(s) = *self.node(item) {
                        let s = &self.sets[s as usize];
                        set = Some(set.map_or_else(|| s.clone(), |x| x.union(s)));
                        sets += 1;
                    }
                }
            }
        }
        if sets > 1 {
            list.retain(|&i| !matches!(self.node(i), Node::Set(_)));
            if let Some(set) = set {
                list.push(self.set(set));
            }
        }
        if counters > runs.len() {
            list.retain(|&i| self.split_counter(i).is_none());
            for ((body, tail), mut ranges) in runs {
                ranges.sort_unstable();
                let mut merged: Vec<(u32, u32)> = Vec::new();
                for (min, max) in ranges {
                    match merged.last_mut() {
                        Some(last) if min <= last.1.saturating_add(1) => last.1 = last.1.max(max),
                        _ => merged.push((min, max)),
                    }
                }
                for (min, max) in merged {
                    let run = self.repeat(body, min, max);
                    let item = self.concat(run, tail);
                    list.push(item);
                }
            }
        }
        list.sort_unstable();
        list.dedup();
    }

    /// `body{min,max} tail`, if the expression has that shape.
    fn split_counter(&self, id: Language) -> Option<(Language, Language, u32, u32)> {
        match *self.node(id) {
            Node::Repeat(body, min, max) => Some((body, Language::EPSILON, min, max)),
            Node::Concat(head, tail) => match *self.node(head) {
                Node::Repeat(body, min, max) => Some((body, tail, min, max)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Texts in all of the languages.
    pub fn and(&mut self, items: impl IntoIterator<Item = Language>) -> Language {
        let mut list = Vec::new();
        for item in items {
            match self.node(item) {
                Node::Empty => return Language::EMPTY,
                Node::And(inner) => list.extend_from_slice(inner),
                _ if item == Language::ALL => {}
                _ => list.push(item),
            }
        }
        self.work += 1 + list.len() as u64;
        work::count(1 + list.len() as u64);
        list.sort_unstable();
        list.dedup();
        match list.as_slice() {
            [] => return Language::ALL,
            [one] => return *one,
            _ => {}
        }
        let max_len = list.iter().map(|&i| self.facts(i).max_len).min().unwrap_or(UNBOUNDED);
        if list.iter().any(|&i| self.facts(i).min_len > max_len) {
            return Language::EMPTY;
        }
        if list.iter().any(|&i| self.facts(i).here || self.facts(i).looks_behind) {
            // What a look-behind will have seen when this place is reached is not known yet, so the rules below do not hold.
            return self.intern(Node::And(list.into()));
        }
        if list.contains(&Language::EPSILON) {
            return if list.iter().all(|&i| self.is_nullable(i)) { Language::EPSILON } else { Language::EMPTY };
        }
        // x and not x.
        if list.iter().any(|&i| matches!(self.node(i), Node::Not(inner) if list.binary_search(inner).is_ok())) {
            return Language::EMPTY;
        }
        if let Some(filtered) = self.filter_texts(&list) {
            return filtered;
        }
        let sets: Vec<u32> =
            list.iter().filter_map(|&i| if let Node::Set(s) = self.node(i) { Some(*s) } else { None }).collect();
        if sets.len() > 1 {
            let mut both = self.sets[sets[0] as usize].clone();
            for &s in &sets[1..] {
                both = both.intersection(&self.sets[s as usize]);
            }
            list.retain(|&i| !matches!(self.node(i), Node::Set(_)));
            let set = self.set(both);
            list.push(set);
            return self.and(list);
        }
        if let Some(run) = self.intersect_runs(&list) {
            return run;
        }
        self.intern(Node::And(list.into()))
    }

    /// A finite list of texts in an intersection: try each text on the rest, and no intersection is left.
    fn filter_texts(&mut self, list: &[Language]) -> Option<Language> {
        const MOST: u32 = 20_000;
        let (_, at) = list.iter().filter_map(|&i| Some((self.slice_len(i)?, i))).min()?;
        if self.slice_len(at)? > MOST {
            return None;
        }
        let mut texts: Vec<Box<str>> = self.as_texts(at)?.into_iter().map(Into::into).collect();
        let before = texts.len();
        for &other in list {
            if other != at {
                texts.retain(|text| self.matches(other, text));
            }
        }
        if texts.len() == before { Some(at) } else { Some(self.sorted_texts(texts)) }
    }

    /// How many texts there are at most, if the language is a list of them.
    fn slice_len(&self, id: Language) -> Option<u32> {
        match self.node(id) {
            Node::Empty => Some(0),
            Node::Epsilon => Some(1),
            Node::Texts { lo, hi, .. } => Some(hi - lo),
            _ => None,
        }
    }

    /// Runs of one set each, and nothing else: again a run.
    fn intersect_runs(&mut self, list: &[Language]) -> Option<Language> {
        let mut set = CharSet::any();
        let (mut low, mut high) = (0, UNBOUNDED);
        for &item in list {
            let (s, min, max) = self.as_run(item)?;
            (low, high, set) = (low.max(min), high.min(max), set.intersection(s));
        }
        let body = self.set(set);
        Some(if low > high { Language::EMPTY } else { self.repeat(body, low, high) })
    }

    /// All texts that are not in the language.
    pub fn not(&mut self, a: Language) -> Language {
        match self.node(a) {
            Node::Not(inner) => *inner,
            _ => self.intern(Node::Not(a)),
        }
    }

    /// Texts of `a` that are not in `b`.
    pub fn difference(&mut self, a: Language, b: Language) -> Language {
        let not_b = self.not(b);
        self.and([a, not_b])
    }

    /// From `min` to `max` texts of `a` in a row; `UNBOUNDED` for no upper bound.
    pub fn repeat(&mut self, a: Language, min: u32, max: u32) -> Language {
        debug_assert!(min <= max);
        if max == 0 || a == Language::EPSILON {
            return Language::EPSILON;
        }
        if a == Language::EMPTY {
            return if min == 0 { Language::EPSILON } else { Language::EMPTY };
        }
        if min == 1 && max == 1 {
            return a;
        }
        let facts = self.facts(a);
        if a == Language::ALL {
            return a;
        }
        if facts.looks && facts.max_len == 0 {
            // Nothing but assertions: saying it once is saying it often.
            return if min == 0 { Language::EPSILON } else { a };
        }
        if facts.looks && facts.min_len == 0 && min > 0 {
            // A round may be empty at one place, where an assertion holds, and not at the next: the rounds that must be
            // are written out.
            let mut all = self.repeat(a, 0, if max == UNBOUNDED { max } else { max - min });
            for _ in 0..min {
                all = self.concat(a, all);
            }
            return all;
        }
        let min = if facts.nullable { 0 } else { min };
        if min == 0 && max == UNBOUNDED {
            match *self.node(a) {
                Node::Repeat(inner, low, UNBOUNDED) if low <= 1 => return self.repeat(inner, 0, UNBOUNDED),
                Node::Repeat(inner, 0, _) => return self.repeat(inner, 0, UNBOUNDED),
                Node::Set(s) if self.is_alphabet(s) => return Language::ALL,
                _ => {}
            }
        }
        if let Node::Repeat(inner, low, high) = *self.node(a)
            && let Some((low, high)) = nested_counts(low, high, min, max)
        {
            return self.repeat(inner, low, high);
        }
        self.intern(Node::Repeat(a, min, max))
    }

    /// Any number of texts of `a` in a row.
    pub fn star(&mut self, a: Language) -> Language {
        self.repeat(a, 0, UNBOUNDED)
    }

    /// A text of `a` or nothing.
    pub fn optional(&mut self, a: Language) -> Language {
        self.union([a, Language::EPSILON])
    }

    /// All texts of `min` to `max` characters; `UNBOUNDED` for no upper bound.
    pub fn length(&mut self, min: u32, max: u32) -> Language {
        let any = self.any_char();
        self.repeat(any, min, max)
    }

    /// A zero-width assertion, to be used as a part of a concatenation. Ahead: the text from this point up to its very end
    /// is in `a`. Behind: the text from its very beginning up to this point is in `a`. So an assertion that may end or
    /// begin anywhere is `concat(..., ALL)` or `concat(ALL, ...)`, and `EPSILON` is the end or the beginning of the text.
    ///
    /// Assertions see the whole rest of the text only if no intersection or complement stands around them: build those
    /// around complete expressions.
    pub fn look(&mut self, look: Look, a: Language) -> Language {
        let (never, always) =
            if look.negated { (Language::EPSILON, Language::EMPTY) } else { (Language::EMPTY, Language::EPSILON) };
        let facts = self.facts(a);
        match a {
            Language::EMPTY => never,
            Language::ALL => always,
            _ if look.behind && facts.looks_ahead && !facts.here => {
                let here = self.intern(Node::Here);
                let rest = self.concat(here, Language::ALL);
                let a = self.concat(a, rest);
                self.intern(Node::Look(look, a))
            }
            _ => self.intern(Node::Look(look, a)),
        }
    }

    /// Whether the language is a list of many texts, or its complement.
    fn is_long_list(&self, id: Language) -> bool {
        match *self.node(id) {
            Node::Texts { lo, hi, .. } => (hi - lo) as usize > SHORT,
            Node::Not(inner) => matches!(*self.node(inner), Node::Texts { lo, hi, .. } if (hi - lo) as usize > SHORT),
            _ => false,
        }
    }

    /// Whether the whole text is in the language.
    pub fn matches(&mut self, id: Language, text: &str) -> bool {
        // A long list is asked as it is, as each step through it would build a state; everything else has states anyway.
        if !self.facts(id).looks {
            match self.node(id) {
                &Node::Not(inner) if self.is_long_list(inner) => {
                    return self.can_write(text) && !self.matches(inner, text);
                }
                Node::And(items) if items.iter().any(|&item| self.is_long_list(item)) => {
                    let items = items.clone();
                    return items.iter().all(|&item| self.matches(item, text));
                }
                Node::Texts { list, lo, hi, depth } if self.is_long_list(id) => {
                    return self.lists[*list as usize].has(*lo, *hi, *depth, text);
                }
                _ => {}
            }
        }
        let mut at = id;
        for c in text.chars() {
            at = self.step(at, c as u32);
            if at == Language::EMPTY {
                return false;
            }
        }
        self.is_nullable(at)
    }
}

/// The bounds of `(x{low,high}){min,max}` as one counter, if the counts that it allows have no gap.
fn nested_counts(low: u32, high: u32, min: u32, max: u32) -> Option<(u32, u32)> {
    // From k rounds to k + 1 the counts go from k * high to (k + 1) * low; the first step is the widest.
    let gapless = max == min || high == UNBOUNDED || {
        let (low, high, min) = (u64::from(low), u64::from(high), u64::from(min));
        min * high + 1 >= (min + 1) * low
    };
    if !gapless || (min == 0 && low > 1 && high == UNBOUNDED) {
        return None;
    }
    let product = |a: u32, b: u32| match a.checked_mul(b) {
        _ if a == UNBOUNDED || b == UNBOUNDED => Some(UNBOUNDED),
        Some(UNBOUNDED) | None => None,
        some => some,
    };
    Some((low.checked_mul(min).filter(|&x| x != UNBOUNDED)?, product(high, max)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star_of(l: &mut Languages, text: &str) -> Language {
        let a = l.literal(text);
        l.star(a)
    }

    #[test]
    fn boolean_operations() {
        let mut l = Languages::new();
        let a = star_of(&mut l, "ab");
        let three = l.length(6, 6);
        let both = l.and([a, three]);
        assert!(l.matches(both, "ababab"));
        assert!(!l.matches(both, "abab"));
        let neither = l.not(both);
        assert!(!l.matches(neither, "ababab") && l.matches(neither, "x"));
        let odd = l.length(3, 3);
        let none = l.and([a, odd]);
        assert!(l.is_empty_language(none).unwrap());
        assert_eq!(l.example(both).unwrap().as_deref(), Some("ababab"));
    }

    #[test]
    fn a_list_is_a_trie() {
        let mut l = Languages::new();
        let t = l.texts(["get", "get_all", "put", ""]);
        for (text, is_in) in [("get", true), ("get_all", true), ("get_", false), ("", true), ("pu", false)] {
            assert_eq!(l.matches(t, text), is_in, "{text}");
        }
        let short = l.length(1, 3);
        let few = l.and([t, short]);
        assert_eq!(l.as_texts(few), Some(vec!["get", "put"]));
    }

    #[test]
    fn look_ahead_sees_the_rest_of_the_text_from_within_a_loop() {
        // (?:(?=a)[a-b]|c)*x : every b is excluded
        let mut l = Languages::new();
        let a = l.literal("a");
        let ab = l.set(CharSet::new([(97, 98)]));
        let next_is_a = l.concat(a, Language::ALL);
        let ahead = l.look(Look { behind: false, negated: false }, next_is_a);
        let left = l.concat(ahead, ab);
        let c = l.literal("c");
        let x = l.literal("x");
        let body = l.union([left, c]);
        let body = l.star(body);
        let all = l.concat(body, x);
        assert!(l.matches(all, "aacax"));
        assert!(!l.matches(all, "abx"));
    }

    #[test]
    fn look_behind_and_anchors() {
        let mut l = Languages::new();
        // .*(?<=ab)c.*
        let ab = l.literal("ab");
        let seen = l.concat(Language::ALL, ab);
        let behind = l.look(Look { behind: true, negated: false }, seen);
        let c = l.literal("c");
        let all = l.sequence([Language::ALL, behind, c, Language::ALL]);
        assert!(l.matches(all, "xabcx") && l.matches(all, "abc"));
        assert!(!l.matches(all, "bc") && !l.matches(all, "abxc"));
        // .*^a: the beginning of the text is a look-behind for nothing
        let start = l.look(Look { behind: true, negated: false }, Language::EPSILON);
        let a = l.literal("a");
        let anchored = l.sequence([Language::ALL, start, a]);
        assert!(l.matches(anchored, "a") && !l.matches(anchored, "ba"));
    }

    #[test]
    fn no_text_leaves_the_alphabet() {
        let mut l = Languages::over(Some(CharSet::new([(0, 0xFFFF)])));
        let both = l.texts(["é", "😀"]);
        assert_eq!(l.as_texts(both), Some(vec!["é"]));
        let any = l.any_char();
        assert_eq!(l.star(any), Language::ALL);
        assert!(l.matches(Language::ALL, "é"));
        let face = l.transitions(Language::ALL).target('😀' as u32);
        assert_eq!(face, Language::EMPTY);
        let not_e = l.not(both);
        assert_eq!(l.transitions(not_e).target('😀' as u32), Language::EMPTY);
    }

    #[test]
    fn counters_under_a_search_stay_few() {
        let mut l = Languages::new();
        let lower = l.set(CharSet::new([(97, 122)]));
        let run = l.repeat(lower, 0, 1000);
        let x = l.literal("!");
        let mut at = l.sequence([Language::ALL, run, x]);
        let before = l.len();
        for _ in 0..2000 {
            at = l.step(at, 97);
        }
        assert!(l.len() < before + 3000, "{}", l.len());
    }
}
