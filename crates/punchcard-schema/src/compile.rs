//! From a schema document to formulas: identifiers and references, and the walk over keywords.
//!
//! References never reach the network: a document is known if it is the schema itself, one of the caller's resources, or
//! embedded in one of them under an `$id`.

use crate::algebra::Algebra;
use crate::dialect::{Dialect, Dialects};
use crate::draft::Draft;
use crate::dynamic::Scopes;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, FxMap, Node, Type};
use crate::json::{Json, Value, ValueId};
use crate::keywords::closed::{Closing, Role, Scope};
use crate::keywords::{self, Keyword};
use fluent_uri::{Uri, UriRef};
use punchcard_automata::work;

/// The base of a schema that has no identifier of its own.
const DEFAULT_BASE: &str = "schema:///root.json";

/// One schema resource: a document, or a part of one that has an identifier of its own.
#[derive(Debug)]
pub(crate) struct Resource {
    uri: String,
    dialect: Dialect,
    anchors: FxMap<Box<str>, ValueId>,
    /// `$dynamicAnchor` names; `$recursiveAnchor: true` is the empty name.
    pub(crate) dynamic: FxMap<Box<str>, ValueId>,
}

/// All identifiers of all documents.
#[derive(Debug)]
pub struct Registry {
    pub(crate) roots: FxMap<String, ValueId>,
    pub(crate) resources: FxMap<ValueId, Resource>,
    pub(crate) scopes: Scopes,
}

/// A keyword being compiled: where it stands.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub schema: ValueId,
    pub keyword: &'a str,
    pub value: ValueId,
    pub scope: Scope,
    pub draft: Draft,
    /// The part of the schema that closes the object, under `strict`, and the id of what is declared beside it.
    pub closes: Option<(ValueId, u32)>,
}

impl At<'_> {
    /// The context of a schema that speaks of the same value. `part` is the keyword's value, or a branch of it.
    pub(crate) fn scope_of_part(self, part: ValueId) -> Scope {
        match self.closes {
            Some((closing, list)) if closing == part => Scope { role: Role::Whole(list), ..self.scope },
            _ => self.scope.part(),
        }
    }
}

impl Registry {
    pub(crate) fn new(
        json: &Json,
        root: ValueId,
        documents: Vec<(String, ValueId)>,
        draft: Draft,
    ) -> Result<Registry, SchemaError> {
        let mut registry = Registry { roots: FxMap::default(), resources: FxMap::default(), scopes: Scopes::default() };
        let dialects = Dialects::new(json, &documents, draft);
        let own = dialects.of(json, root)?.unwrap_or(Dialect::of(draft));
        registry.add_document(json, DEFAULT_BASE, root, own, &dialects)?;
        for (uri, document) in documents {
            let dialect = dialects.of(json, document)?.unwrap_or(Dialect::of(own.draft));
            registry.add_document(json, uri.trim_end_matches('#'), document, dialect, &dialects)?;
        }
        Ok(registry)
    }

    fn add_document(
        &mut self,
        json: &Json,
        uri: &str,
        root: ValueId,
        dialect: Dialect,
        dialects: &Dialects,
    ) -> Result<(), SchemaError> {
        self.roots.insert(uri.to_string(), root);
        self.resources.insert(root, Resource::new(uri, dialect));
        // (schema, resource it belongs to)
        let mut todo = vec![(root, root)];
        while let Some((schema, mut resource)) = todo.pop() {
            let dialect = dialects.of(json, schema)?.unwrap_or(self.resources[&resource].dialect);
            let draft = dialect.draft;
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
                            own.dialect = dialect;
                        }
                    } else {
                        self.resources.insert(schema, Resource::new(&uri, dialect));
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
        Ok(())
    }

    fn anchor(&mut self, resource: ValueId, name: &str, schema: ValueId, dynamic: bool) {
        if let Some(resource) = self.resources.get_mut(&resource) {
            resource.anchors.entry(name.into()).or_insert(schema);
            if dynamic {
                resource.dynamic.entry(name.into()).or_insert(schema);
            }
        }
    }

    /// The resource that a place belongs to: the nearest one above.
    pub(crate) fn resource_of(&self, json: &Json, at: ValueId) -> ValueId {
        let mut at = at;
        while !self.resources.contains_key(&at) {
            match json.parent(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    pub(crate) fn dialect_at(&self, json: &Json, at: ValueId) -> Dialect {
        self.resources.get(&self.resource_of(json, at)).map_or(Dialect::of(Draft::V2020), |r| r.dialect)
    }

    pub(crate) fn draft_at(&self, json: &Json, at: ValueId) -> Draft {
        self.dialect_at(json, at).draft
    }
}

impl Resource {
    fn new(uri: &str, dialect: Dialect) -> Resource {
        Resource { uri: uri.to_string(), dialect, anchors: FxMap::default(), dynamic: FxMap::default() }
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
        let role = if self.options.strict { Role::Whole(0) } else { Role::Asked };
        self.find_dynamic_names();
        let scope = Scope { dynamic: self.scope_within(0, root), role };
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
        self.check_circles()?;
        Ok(formula)
    }

    /// Refuses schemas that refer to their own negation. It shows when such a schema is restricted to a type; so that is
    /// done with all that come back to themselves without a member or an item between.
    fn check_circles(&mut self) -> Result<(), SchemaError> {
        let mut waits_for: FxMap<Formula, usize> = FxMap::default();
        let mut leads_back: FxMap<Formula, Vec<Formula>> = FxMap::default();
        let mut done = Vec::new();
        for (&(at, scope), &body) in &self.compiled {
            let Some(schema) = self.formulas.known(&Node::Schema { at, scope }) else { continue };
            let next = self.formulas.schemas_of(body);
            if next.is_empty() {
                done.push(schema);
            }
            waits_for.insert(schema, next.len());
            next.into_iter().for_each(|next| leads_back.entry(next).or_default().push(schema));
        }
        while let Some(schema) = done.pop() {
            waits_for.remove(&schema);
            for before in leads_back.remove(&schema).unwrap_or_default() {
                if let Some(count) = waits_for.get_mut(&before) {
                    *count -= 1;
                    if *count == 0 {
                        done.push(before);
                    }
                }
            }
        }
        let mut circles: Vec<Formula> = waits_for.into_keys().collect();
        circles.sort_unstable();
        for schema in circles {
            for t in Type::ALL {
                match self.restrict(schema, t) {
                    Err(error) if error.kind == SchemaErrorKind::Invalid => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The formula of the schema at a place, built once.
    pub(crate) fn compile_schema(&mut self, schema: ValueId, scope: Scope) -> Result<Formula, SchemaError> {
        if let Some(&known) = self.compiled.get(&(schema, scope)) {
            return Ok(known);
        }
        let formula = match self.json.get(schema) {
            Value::Bool(true) => Formula::TRUE,
            Value::Bool(false) => Formula::FALSE,
            _ if self.assumed == Some(schema) => Formula::TRUE,
            Value::Object(members) => {
                work::spend(1 + members.len() as u64)?;
                let parts = self.compile_keywords(schema, scope)?;
                let order = self.order_across(schema);
                self.formulas.and(parts.into_iter().map(|(_, part)| part).chain([order]))
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
        if self.naming.contains(&(schema, scope)) {
            // Only of strings it says everything: see `property_names`.
            return Ok(formula);
        }
        self.note_context(schema, scope)?;
        self.compiled.insert((schema, scope), formula);
        Ok(formula)
    }

    /// The formulas of the keywords of a schema, and what closes it under `strict`, which has no keyword.
    pub(crate) fn compile_keywords(
        &mut self,
        schema: ValueId,
        scope: Scope,
    ) -> Result<Vec<(Option<ValueId>, Formula)>, SchemaError> {
        let Value::Object(members) = self.json.get(schema) else { return Ok(Vec::new()) };
        let members = members.clone();
        let dialect = self.registry.dialect_at(&self.json, schema);
        let draft = dialect.draft;
        let mut parts = Vec::with_capacity(members.len());
        let mut closes = None;
        if let Role::Whole(list) = scope.role {
            match self.closing(schema, scope.dynamic, list)? {
                Closing::Here(formula) => parts.push((None, formula)),
                Closing::Within(part, list) => closes = Some((part, list)),
            }
        }
        let reference_only = self.hides_siblings(schema, draft);
        for (keyword, value) in members.iter().filter(|(name, _)| !reference_only || &**name == "$ref") {
            let at = At { schema, keyword, value: *value, scope, draft, closes };
            match keywords::lookup(keyword, dialect) {
                Keyword::Assert(compile) => match compile(self, at) {
                    Ok(part) => parts.push((Some(*value), part)),
                    Err(error) if self.leaves_out(&error) => self.left_out.push((*value, error)),
                    Err(error) => return Err(error),
                },
                Keyword::Annotation => {}
            }
        }
        Ok(parts)
    }

    fn leaves_out(&self, error: &SchemaError) -> bool {
        self.options.leave_out_unsupported && error.kind == SchemaErrorKind::Unsupported
    }

    /// The formula that stands for a subschema.
    pub(crate) fn subschema(&mut self, schema: ValueId, scope: Scope) -> Formula {
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
            scope = self.scope_in(scope, schema);
            match (&*name, self.json.get(value)) {
                ("$ref", Value::String(_)) if alone => {
                    let draft = self.registry.draft_at(&self.json, schema);
                    let at = At { schema, keyword: "$ref", value, scope, draft, closes: None };
                    match self.target_of(at) {
                        Ok(target) => schema = target,
                        // It is reported when the schema is compiled.
                        Err(_) => break,
                    }
                }
                ("type", _) if alone => match self.compile_schema(schema, scope.asked()) {
                    Ok(formula) => return formula,
                    Err(_) => break,
                },
                _ => break,
            }
        }
        let scope = self.scope_in(scope, schema);
        self.formulas.intern(Node::Schema { at: schema, scope })
    }

    /// The same context inside a schema.
    pub(crate) fn scope_in(&mut self, scope: Scope, schema: ValueId) -> Scope {
        Scope { dynamic: self.scope_within(scope.dynamic, schema), ..scope }
    }

    /// Whether a reference hides all that stands beside it.
    pub(crate) fn hides_siblings(&self, schema: ValueId, draft: Draft) -> bool {
        draft <= Draft::V7 && self.json.member(schema, "$ref").is_some()
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
        Ok(self.registry.scopes.outermost(at.scope.dynamic, anchor).unwrap_or(target))
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
