//! Dynamic scopes: what `$dynamicRef` and `$recursiveRef` lead to depends on the way by which a schema was reached.
//!
//! Of that way only the outermost place of each anchor matters, and only of anchors that several places have and that a
//! dynamic reference further on names. So a scope is a list of such places: ways that bind the same are one scope, and a
//! schema is compiled once for each that it can tell apart. Their number can still grow exponentially with the schema, so
//! it is limited.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::FxMap;
use crate::json::{Value, ValueId};
use crate::keywords::closed::{Role, Scope};
use crate::keywords::for_each_subschema;
use std::sync::Arc;

/// Resources times names, up to which it is found out who can come to which name.
const MOST_PAIRS: usize = 4 << 20;

/// Where the anchors of dynamic references lead: (name, place), sorted.
type Bindings = Arc<[(u32, ValueId)]>;

/// All dynamic scopes. Scope 0 binds nothing.
#[derive(Debug)]
pub(crate) struct Scopes {
    bindings: Vec<Bindings>,
    ids: FxMap<Bindings, u32>,
    entered: FxMap<(u32, ValueId), u32>,
    /// Names that matter: of dynamic references, and of several anchors.
    names: FxMap<Box<str>, u32>,
    /// For each resource the names that can be come to from within, as bits; `None` if all may be.
    reached: Option<FxMap<ValueId, Box<[u64]>>>,
    /// What the contexts beyond the first one of each schema weigh.
    weight: usize,
}

impl Default for Scopes {
    fn default() -> Self {
        let nothing: Bindings = Arc::new([]);
        Scopes {
            bindings: vec![nothing.clone()],
            ids: [(nothing, 0)].into_iter().collect(),
            entered: FxMap::default(),
            names: FxMap::default(),
            reached: None,
            weight: 0,
        }
    }
}

impl Scopes {
    /// Where the anchor of a dynamic reference leads in a scope, if it is bound there.
    pub(crate) fn outermost(&self, scope: u32, anchor: &str) -> Option<ValueId> {
        let name = self.names.get(anchor)?;
        let bindings = &self.bindings[scope as usize];
        bindings.binary_search_by_key(name, |&(name, _)| name).ok().map(|at| bindings[at].1)
    }

    /// A scope of another registry of the same documents.
    pub(crate) fn carry(&mut self, from: &Scopes, scope: u32) -> u32 {
        self.intern(from.bindings[scope as usize].clone())
    }

    fn intern(&mut self, bindings: Bindings) -> u32 {
        if let Some(&id) = self.ids.get(&bindings) {
            return id;
        }
        let id = self.bindings.len() as u32;
        self.weight += 1 + bindings.len() / 8;
        self.bindings.push(bindings.clone());
        self.ids.insert(bindings, id);
        id
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let bindings: usize = self.bindings.iter().map(|bindings| 2 * size_of_val(&**bindings) + 32).sum();
        bindings + self.ids.allocation_size() + self.entered.allocation_size()
    }

    fn matters(&self, resource: ValueId, name: u32) -> bool {
        match &self.reached {
            Some(reached) => {
                reached.get(&resource).is_some_and(|bits| bits[name as usize / 64] >> (name % 64) & 1 == 1)
            }
            None => true,
        }
    }
}

impl Algebra {
    /// The dynamic scope inside a schema that is entered from `scope`.
    pub(crate) fn scope_within(&mut self, scope: u32, schema: ValueId) -> u32 {
        // Where nothing is bound nothing depends on the scope, and all schemas are shared.
        if self.registry.scopes.names.is_empty() {
            return 0;
        }
        let resource = self.registry.resource_of(&self.json, schema);
        if let Some(&known) = self.registry.scopes.entered.get(&(scope, resource)) {
            return known;
        }
        let scopes = &self.registry.scopes;
        let mut bindings: Vec<(u32, ValueId)> = scopes.bindings[scope as usize].to_vec();
        if let Some(own) = self.registry.resources.get(&resource) {
            for (name, &place) in &own.dynamic {
                if let Some(&name) = scopes.names.get(name)
                    && let Err(at) = bindings.binary_search_by_key(&name, |&(name, _)| name)
                {
                    bindings.insert(at, (name, place));
                }
            }
        }
        bindings.retain(|&(name, _)| scopes.matters(resource, name));
        let scopes = &mut self.registry.scopes;
        let id = scopes.intern(bindings.into());
        scopes.entered.insert((scope, resource), id);
        id
    }

    /// Counts a schema that is compiled in a further context.
    pub(crate) fn note_context(&mut self, schema: ValueId, scope: Scope) -> Result<(), SchemaError> {
        if scope.dynamic != 0 || matches!(scope.role, Role::Whole(1..)) {
            // What is written down for it grows with its lists.
            let Value::Object(members) = self.json.get(schema) else { return Ok(()) };
            let lengths = members.iter().map(|&(_, value)| match self.json.get(value) {
                Value::Object(members) => members.len(),
                Value::Array(items) => items.len(),
                _ => 1,
            });
            self.registry.scopes.weight += 1 + lengths.sum::<usize>() / 8;
        }
        let limit = self.options.limits.max_contexts;
        if self.registry.scopes.weight > limit {
            let pointer = self.json.pointer(schema);
            let hint = "Let fewer ways lead to a $dynamicRef (or fewer branches to an object, under strict), or raise the limit";
            return Err(SchemaError::limit("max_contexts", limit, &pointer, hint));
        }
        Ok(())
    }

    /// Finds the anchors that matter to dynamic references, and from where each can be come to.
    pub(crate) fn find_dynamic_names(&mut self) {
        let mut anchors: FxMap<&str, usize> = FxMap::default();
        for resource in self.registry.resources.values() {
            resource.dynamic.keys().for_each(|name| *anchors.entry(name).or_default() += 1);
        }
        // One place alone is where a reference leads anyway.
        anchors.retain(|_, count| *count > 1);
        if anchors.is_empty() {
            return;
        }
        let mut named: Vec<(ValueId, Box<str>)> = Vec::new();
        let mut leads: Vec<(ValueId, ValueId)> = Vec::new();
        let mut todo: Vec<ValueId> = self.registry.roots.values().copied().collect();
        let mut visited: FxMap<ValueId, ()> = FxMap::default();
        while let Some(schema) = todo.pop() {
            if visited.insert(schema, ()).is_some() {
                continue;
            }
            let own = self.registry.resource_of(&self.json, schema);
            let draft = self.registry.draft_at(&self.json, schema);
            let mut next = Vec::new();
            for_each_subschema(&self.json, schema, draft, &mut |child| next.push(child));
            for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
                let Some(value) = self.json.member(schema, keyword) else { continue };
                let scope = Scope { dynamic: 0, role: Role::Asked };
                let at = At { schema, keyword, value, scope, draft, closes: None };
                // A fault is reported when the schema is compiled.
                next.extend(self.target_of(at));
                if keyword != "$ref"
                    && let Some(name) = self.json.text(value).map(|text| text.split_once('#').map_or("", |(_, n)| n))
                    && anchors.contains_key(name)
                {
                    named.push((own, name.into()));
                }
            }
            let others = next.iter().map(|&child| (own, self.registry.resource_of(&self.json, child)));
            leads.extend(others.filter(|&(from, to)| from != to));
            todo.extend(next);
        }
        let mut names: Vec<&str> = named.iter().map(|(_, name)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        let names: FxMap<Box<str>, u32> = names.into_iter().map(Box::from).zip(0..).collect();
        // A dynamic reference may lead to every place with its anchor.
        let mut with_anchor: FxMap<u32, Vec<ValueId>> = FxMap::default();
        for (&id, resource) in &self.registry.resources {
            for name in resource.dynamic.keys().filter_map(|name| names.get(name)) {
                with_anchor.entry(*name).or_default().push(id);
            }
        }
        if self.registry.resources.len() * names.len() <= MOST_PAIRS {
            let words = names.len().div_ceil(64);
            let mut reached: FxMap<ValueId, Box<[u64]>> =
                self.registry.resources.keys().map(|&id| (id, vec![0; words].into())).collect();
            let mut todo = Vec::new();
            for (resource, name) in &named {
                let name = names[name];
                leads.extend(with_anchor.get(&name).into_iter().flatten().map(|&to| (*resource, to)));
                todo.push((*resource, name));
            }
            let mut back: FxMap<ValueId, Vec<ValueId>> = FxMap::default();
            leads.sort_unstable();
            leads.dedup();
            leads.into_iter().for_each(|(from, to)| back.entry(to).or_default().push(from));
            while let Some((resource, name)) = todo.pop() {
                let Some(bits) = reached.get_mut(&resource) else { continue };
                let (word, bit) = (name as usize / 64, 1 << (name % 64));
                if bits[word] & bit == 0 {
                    bits[word] |= bit;
                    todo.extend(back.get(&resource).into_iter().flatten().map(|&from| (from, name)));
                }
            }
            self.registry.scopes.reached = Some(reached);
        }
        self.registry.scopes.names = names;
    }
}
