//! From a schema document to formulas: identifiers and references, and the walk over keywords.
//!
//! References never reach the network: a document is known if it is the schema itself, one of the caller's resources, or
//! embedded in one of them under an `$id`.

use crate::algebra::Algebra;
use crate::draft::Draft;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, FxMap, Node};
use crate::json::{Json, Value, ValueId};
use crate::keywords::{self, Keyword};
use fluent_uri::{Uri, UriRef};
use punchcard_automata::work;

/// The base of a schema that has no identifier of its own.
const DEFAULT_BASE: &str = "schema:///root.json";

/// One schema resource: a document, or a part of one that has an identifier of its own.
#[derive(Debug)]
struct Resource {
    uri: String,
    draft: Draft,
    anchors: FxMap<Box<str>, ValueId>,
    /// `$dynamicAnchor` names; `$recursiveAnchor: true` is the empty name.
    dynamic: FxMap<Box<str>, ValueId>,
}

/// All identifiers of all documents.
#[derive(Debug)]
pub struct Registry {
    roots: FxMap<String, ValueId>,
    resources: FxMap<ValueId, Resource>,
    /// Dynamic scopes: the resources entered so far, outermost first. Scope 0 is the empty one.
    scopes: Vec<Box<[ValueId]>>,
    scope_ids: FxMap<Box<[ValueId]>, u32>,
    is_dynamic: bool,
}

/// A keyword being compiled: where it stands.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub schema: ValueId,
    pub keyword: &'a str,
    pub value: ValueId,
    pub scope: u32,
    pub draft: Draft,
}

impl Registry {
    pub(crate) fn new(
        json: &Json,
        root: ValueId,
        documents: Vec<(String, ValueId)>,
        draft: Draft,
    ) -> Result<Registry, SchemaError> {
        let mut registry = Registry {
            roots: FxMap::default(),
            resources: FxMap::default(),
            scopes: vec![Box::new([])],
            scope_ids: FxMap::default(),
            is_dynamic: false,
        };
        let empty: Box<[ValueId]> = Box::new([]);
        registry.scope_ids.insert(empty, 0);
        let own = draft_of(json, root).unwrap_or(draft);
        registry.add_document(json, DEFAULT_BASE, root, own);
        for (uri, document) in documents {
            let draft = draft_of(json, document).unwrap_or(own);
            registry.add_document(json, uri.trim_end_matches('#'), document, draft);
        }
        Ok(registry)
    }

    fn add_document(&mut self, json: &Json, uri: &str, root: ValueId, draft: Draft) {
        self.roots.insert(uri.to_string(), root);
        self.resources.insert(root, Resource::new(uri, draft));
        // (schema, resource it belongs to)
        let mut todo = vec![(root, root)];
        while let Some((schema, mut resource)) = todo.pop() {
            let mut draft = self.resources[&resource].draft;
            if let Some(own) = draft_of(json, schema) {
                draft = own;
            }
            let id = json.member(schema, draft.id_keyword()).and_then(|id| match json.get(id) {
                Value::String(text) => Some(text.as_ref()),
                _ => None,
            });
            // Up to draft 7 a reference hides its siblings, the identifier among them.
            let hidden = draft <= Draft::V7 && json.member(schema, "$ref").is_some();
            if let Some(id) = id.filter(|_| !hidden) {
                let (path, fragment) = id.split_once('#').unwrap_or((id, ""));
                if !path.is_empty()
                    && let Some(uri) = resolve(&self.resources[&resource].uri, path)
                {
                    self.roots.entry(uri.clone()).or_insert(schema);
                    if schema == root {
                        if let Some(own) = self.resources.get_mut(&root) {
                            own.uri = uri;
                            own.draft = draft;
                        }
                    } else {
                        self.resources.insert(schema, Resource::new(&uri, draft));
                    }
                    resource = schema;
                }
                if draft <= Draft::V7 && !fragment.is_empty() {
                    self.anchor(resource, fragment, schema, false);
                }
            }
            for (keyword, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                if let Some(Value::String(name)) = json.member(schema, keyword).map(|v| json.get(v)) {
                    self.anchor(resource, name, schema, dynamic);
                }
            }
            if let Some(Value::Bool(true)) = json.member(schema, "$recursiveAnchor").map(|v| json.get(v)) {
                self.anchor(resource, "", schema, true);
            }
            keywords::for_each_subschema(json, schema, draft, &mut |child| todo.push((child, resource)));
        }
    }

    fn anchor(&mut self, resource: ValueId, name: &str, schema: ValueId, dynamic: bool) {
        self.is_dynamic |= dynamic;
        if let Some(resource) = self.resources.get_mut(&resource) {
            resource.anchors.entry(name.into()).or_insert(schema);
            if dynamic {
                resource.dynamic.entry(name.into()).or_insert(schema);
            }
        }
    }

    /// The resource that a place belongs to: the nearest one above.
    fn resource_of(&self, json: &Json, at: ValueId) -> ValueId {
        let mut at = at;
        while !self.resources.contains_key(&at) {
            match json.parent(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    pub(crate) fn draft_at(&self, json: &Json, at: ValueId) -> Draft {
        self.resources.get(&self.resource_of(json, at)).map_or(Draft::V2020, |r| r.draft)
    }

    /// A scope of another registry of the same documents.
    pub(crate) fn carry_scope(&mut self, from: &Registry, scope: u32) -> u32 {
        from.scopes[scope as usize].iter().fold(0, |scope, &resource| self.enter(scope, resource))
    }

    /// The scope inside `resource`, entered from `scope`.
    fn enter(&mut self, scope: u32, resource: ValueId) -> u32 {
        // Without dynamic anchors nothing depends on the scope, and all schemas are shared.
        if !self.is_dynamic {
            return 0;
        }
        let list = &self.scopes[scope as usize];
        if list.contains(&resource) {
            return scope;
        }
        let list: Box<[ValueId]> = list.iter().copied().chain([resource]).collect();
        if let Some(&id) = self.scope_ids.get(&list) {
            return id;
        }
        let id = self.scopes.len() as u32;
        self.scopes.push(list.clone());
        self.scope_ids.insert(list, id);
        id
    }
}

impl Resource {
    fn new(uri: &str, draft: Draft) -> Resource {
        Resource { uri: uri.to_string(), draft, anchors: FxMap::default(), dynamic: FxMap::default() }
    }
}

fn draft_of(json: &Json, schema: ValueId) -> Option<Draft> {
    match json.member(schema, "$schema").map(|v| json.get(v)) {
        Some(Value::String(uri)) => Draft::from_name(uri),
        _ => None,
    }
}

/// An absolute URI, without fragment, for a reference (RFC 3986, section 5).
fn resolve(base: &str, reference: &str) -> Option<String> {
    if reference.is_empty() {
        return Some(base.to_string());
    }
    let reference = UriRef::parse(reference).ok()?;
    if reference.has_scheme() {
        return Some(reference.to_string());
    }
    let base = Uri::parse(base).ok()?;
    match reference.resolve_against(&base) {
        Ok(uri) => Some(uri.to_string()),
        // A base like `urn:...` has no path to resolve against.
        Err(_) => Some(reference.to_string()),
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_string());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let hex = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).ok()
}

/// References that lead to nothing but another reference are followed so far at once.
const MOST_LONE_REFERENCES: usize = 32;

/// Keywords for people, which no draft gives a meaning.
fn is_comment(keyword: &str) -> bool {
    matches!(keyword, "title" | "description" | "$comment" | "default" | "examples")
}

impl Algebra {
    /// Compiles the root and every schema that can be reached from it, so that faults are found at once.
    pub(crate) fn compile_document(&mut self, root: ValueId) -> Result<Formula, SchemaError> {
        let scope = self.registry.enter(0, root);
        let formula = self.formulas.intern(Node::Schema { at: root, scope });
        let mut todo = vec![(root, scope)];
        while let Some((at, scope)) = todo.pop() {
            if self.compiled.contains_key(&(at, scope)) {
                continue;
            }
            let before = self.formulas.len();
            self.compile_schema(at, scope)?;
            for id in before..self.formulas.len() {
                if let &Node::Schema { at, scope } = self.formulas.node(Formula(id as u32)) {
                    todo.push((at, scope));
                }
            }
        }
        Ok(formula)
    }

    /// The formula of the schema at a place, built once.
    pub(crate) fn compile_schema(&mut self, schema: ValueId, scope: u32) -> Result<Formula, SchemaError> {
        if let Some(&known) = self.compiled.get(&(schema, scope)) {
            return Ok(known);
        }
        let formula = match self.json.get(schema) {
            Value::Bool(true) => Formula::TRUE,
            Value::Bool(false) => Formula::FALSE,
            _ if self.assumed == Some(schema) => Formula::TRUE,
            Value::Object(members) => {
                let members = members.clone();
                work::spend(1 + members.len() as u64)?;
                let draft = self.registry.draft_at(&self.json, schema);
                let reference_only = draft <= Draft::V7 && members.iter().any(|(name, _)| &**name == "$ref");
                let mut parts = Vec::new();
                for (keyword, value) in members.iter() {
                    if reference_only && &**keyword != "$ref" {
                        continue;
                    }
                    let at = At { schema, keyword, value: *value, scope, draft };
                    match keywords::lookup(keyword, draft) {
                        Keyword::Assert(compile) => match compile(self, at) {
                            Ok(part) => parts.push(part),
                            Err(error) if self.leaves_out(&error) => self.left_out.push((*value, error)),
                            Err(error) => return Err(error),
                        },
                        Keyword::Annotation => {}
                    }
                }
                if self.options.strict && !reference_only {
                    let closed = keywords::object::closed_by_strictness(self, schema)?;
                    parts.push(closed);
                }
                if !reference_only {
                    parts.push(self.order_across(schema));
                }
                self.formulas.and(parts)
            }
            _ => {
                let pointer = self.json.pointer(schema);
                return Err(SchemaError {
                    kind: SchemaErrorKind::Invalid,
                    message: format!("The value at '{pointer}' is no schema"),
                    pointer,
                    keyword: "".into(),
                    hint: "A schema is an object or a boolean".into(),
                });
            }
        };
        self.compiled.insert((schema, scope), formula);
        Ok(formula)
    }

    fn leaves_out(&self, error: &SchemaError) -> bool {
        self.options.leave_out_unsupported && error.kind == SchemaErrorKind::Unsupported
    }

    /// The formula that stands for a subschema.
    pub(crate) fn subschema(&mut self, schema: ValueId, scope: u32) -> Formula {
        let (mut schema, mut scope) = (schema, scope);
        // Schemas that say the same should be the same formula: what a lone reference leads to, and the bare types.
        for _ in 0..MOST_LONE_REFERENCES {
            let members = match self.json.get(schema) {
                Value::Bool(true) => return Formula::TRUE,
                Value::Bool(false) => return Formula::FALSE,
                Value::Object(members) => members,
                _ => break,
            };
            let mut asserting = members.iter().filter(|(name, _)| !is_comment(name));
            let Some((name, value)) = asserting.next().cloned() else { return Formula::TRUE };
            let alone = asserting.next().is_none();
            scope = self.scope_within(scope, schema);
            match (&*name, self.json.get(value)) {
                ("$ref", Value::String(text)) if alone => {
                    let draft = self.registry.draft_at(&self.json, schema);
                    let at = At { schema, keyword: "$ref", value, scope, draft };
                    match self.resolve_reference(at, text) {
                        Ok(target) => schema = target,
                        // It is reported when the schema is compiled.
                        Err(_) => break,
                    }
                }
                ("type", _) if alone => match self.compile_schema(schema, scope) {
                    Ok(formula) => return formula,
                    Err(_) => break,
                },
                _ => break,
            }
        }
        self.formulas.intern(Node::Schema { at: schema, scope })
    }

    /// The dynamic scope inside a schema that is entered from `scope`.
    pub(crate) fn scope_within(&mut self, scope: u32, schema: ValueId) -> u32 {
        let resource = self.registry.resource_of(&self.json, schema);
        self.registry.enter(scope, resource)
    }

    /// The place that a reference leads to.
    pub(crate) fn resolve_reference(&self, at: At, reference: &str) -> Result<ValueId, SchemaError> {
        let resource = self.registry.resource_of(&self.json, at.schema);
        let base = self.registry.resources.get(&resource).map_or(DEFAULT_BASE, |r| r.uri.as_str());
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let uri = resolve(base, path);
        let target = uri.as_ref().and_then(|uri| {
            let root = if path.is_empty() { Some(resource) } else { None };
            root.or_else(|| self.registry.roots.get(uri.as_str()).copied())
                .or_else(|| self.registry.roots.get(uri.trim_end_matches('/')).copied())
        });
        let Some(root) = target else {
            let shown = uri.unwrap_or_else(|| path.to_string());
            let own = shown.strip_prefix("schema:///").map(|p| format!("/{p}"));
            return Err(self.reference_error(
                at,
                format!(
                    "The reference '{reference}' leads to the document '{}', which is not known",
                    own.unwrap_or(shown)
                ),
                "Pass the document in `resources`, or write '#/...' for a place in this schema; nothing is fetched",
            ));
        };
        let Some(fragment) = percent_decoded(fragment) else {
            return Err(self.reference_error(
                at,
                format!("The reference '{reference}' has a malformed percent escape"),
                "Write %25 for a percent sign",
            ));
        };
        if fragment.is_empty() {
            return Ok(root);
        }
        if let Some(pointer) = fragment.strip_prefix('/') {
            let mut place = root;
            for token in pointer.split('/') {
                let token = token.replace("~1", "/").replace("~0", "~");
                let next = match self.json.get(place) {
                    Value::Object(_) => self.json.member(place, &token),
                    Value::Array(items) => token.parse::<usize>().ok().and_then(|i| items.get(i).copied()),
                    _ => None,
                };
                match next {
                    Some(next) => place = next,
                    None => {
                        return Err(self.reference_error(
                            at,
                            format!("The reference '{reference}' leads nowhere: there is no '{token}'"),
                            "Check the spelling of the pointer; '/' is written ~1 and '~' is written ~0",
                        ));
                    }
                }
            }
            return Ok(place);
        }
        self.registry.resources.get(&root).and_then(|r| r.anchors.get(fragment.as_str()).copied()).ok_or_else(|| {
            self.reference_error(
                at,
                format!("The reference '{reference}' names an anchor that does not exist"),
                "Give the schema that is meant an \"$anchor\", or write '#/...' with its path",
            )
        })
    }

    /// `$dynamicRef` and `$recursiveRef`: the outermost resource of the scope that has the anchor wins, if the place that
    /// the reference leads to has it as a dynamic one.
    pub(crate) fn resolve_dynamic(&self, at: At, reference: &str) -> Result<ValueId, SchemaError> {
        let target = self.resolve_reference(at, reference)?;
        let anchor = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let resource = self.registry.resource_of(&self.json, target);
        let is_dynamic = self.registry.resources.get(&resource).and_then(|r| r.dynamic.get(anchor)) == Some(&target);
        if !is_dynamic {
            return Ok(target);
        }
        let outer = self.registry.scopes[at.scope as usize]
            .iter()
            .find_map(|r| self.registry.resources.get(r).and_then(|r| r.dynamic.get(anchor)).copied());
        Ok(outer.unwrap_or(target))
    }

    fn reference_error(&self, at: At, message: String, hint: &str) -> SchemaError {
        SchemaError {
            kind: SchemaErrorKind::Invalid,
            message: format!("{message} (at '{}/{}')", self.json.pointer(at.schema), at.keyword),
            pointer: self.pointer_of(at),
            keyword: at.keyword.into(),
            hint: hint.into(),
        }
    }

    fn pointer_of(&self, at: At) -> String {
        format!("{}/{}", self.json.pointer(at.schema), at.keyword.replace('~', "~0").replace('/', "~1"))
    }

    /// The keyword has a value that the specification does not allow.
    pub(crate) fn invalid(&self, at: At, expected: &str) -> SchemaError {
        SchemaError {
            kind: SchemaErrorKind::Invalid,
            message: format!("'{}' at '{}' has a value that is not allowed", at.keyword, self.pointer_of(at)),
            pointer: self.pointer_of(at),
            keyword: at.keyword.into(),
            hint: format!("Expected {expected}").into(),
        }
    }

    pub(crate) fn unsupported(&self, at: At, hint: &str) -> SchemaError {
        SchemaError {
            kind: SchemaErrorKind::Unsupported,
            message: format!("'{}' at '{}' cannot be enforced", at.keyword, self.pointer_of(at)),
            pointer: self.pointer_of(at),
            keyword: at.keyword.into(),
            hint: hint.into(),
        }
    }
}
