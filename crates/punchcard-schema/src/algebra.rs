//! The algebra at work: the store of everything, and what a formula says about each type of value.

use crate::array::ArrayState;
use crate::compile::Registry;
use crate::constant::Constants;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, Formulas, FxMap, Node, Type};
use crate::json::{Json, JsonLimits, ValueId};
use crate::keywords::closed::{self, Scope};
use crate::metaschemas;
use crate::object::{ObjectSpec, ObjectState};
use crate::options::Options;
use crate::order::Orders;
use crate::satisfy::Search;
use punchcard_automata::{CharSet, Language, Languages, work};
use std::sync::Arc;

/// What may stand at a value position: only alternatives that have a value at all.
#[derive(Debug)]
pub struct ValueShape {
    /// Spellings of `null`, `false`, `true` and numbers.
    pub scalar: Language,
    /// Decoded texts of strings; `None` if no string is allowed.
    pub text: Option<Language>,
    /// Ways to begin an object.
    pub objects: Vec<ObjectState>,
    /// The array, if one is allowed.
    pub array: Option<ArrayState>,
}

/// A compiled schema: formulas, languages and everything found out about them so far.
#[derive(Debug)]
pub struct Algebra {
    /// The regular languages.
    pub languages: Languages,
    pub(crate) formulas: Formulas,
    pub(crate) constants: Constants,
    pub(crate) json: Json,
    pub(crate) registry: Registry,
    pub(crate) options: Options,
    pub(crate) compiled: FxMap<(ValueId, Scope), Formula>,
    /// A schema that is taken to admit everything, to find out whether it is to blame.
    pub(crate) assumed: Option<ValueId>,
    /// Values of keywords that are not enforced, and why.
    pub(crate) left_out: Vec<(ValueId, SchemaError)>,
    /// Languages of the patterns, by source.
    pub(crate) patterns: FxMap<Box<str>, Language>,
    /// Formulas that speak of nothing within arrays and objects.
    flat: FxMap<Formula, Option<Formula>>,
    restricted: FxMap<(Formula, Type), Formula>,
    /// Schemas that are being restricted, to notice references that lead nowhere but to each other.
    restricting: Vec<(Formula, Type)>,
    /// The lowest entry of `restricting` that a result depends on.
    depends: usize,
    /// `oneOf` formulas whose alternatives are being compared.
    pub(crate) comparing: Vec<(Formula, Type)>,
    /// Schemas whose `propertyNames` is being compiled.
    pub(crate) naming: Vec<(ValueId, Scope)>,
    text_languages: FxMap<Formula, Language>,
    pub(crate) number_languages: FxMap<Formula, Language>,
    shapes: FxMap<Formula, Arc<ValueShape>>,
    pub(crate) specs: Vec<Arc<ObjectSpec>>,
    pub(crate) spec_ids: FxMap<Formula, u32>,
    pub(crate) objects: crate::object::Memory,
    pub(crate) arrays: crate::array::Memory,
    pub(crate) search: Search,
    /// Bytes of shapes and object specs.
    pub(crate) heap: usize,
    pub(crate) closed: closed::Memory,
    pub(crate) orders: Orders,
}

impl Algebra {
    /// Compiles a schema given as JSON text. `resources` are further documents, by URI. `alphabet` holds the characters
    /// that can be written, if not all can.
    pub fn new(
        schema: &str,
        resources: &[(String, String)],
        options: Options,
        json_limits: JsonLimits,
        alphabet: Option<CharSet>,
    ) -> Result<(Algebra, Formula), SchemaError> {
        let build = |assumed| Self::build(schema, resources, options.clone(), json_limits, alphabet.clone(), assumed);
        let (mut algebra, formula) = build(None)?;
        if !algebra.is_satisfiable(formula)? {
            let root = match *algebra.formulas.node(formula) {
                Node::Schema { at, scope } => Some((at, scope)),
                _ => None,
            };
            return Err(algebra.unsatisfiable(root, build));
        }
        Ok((algebra, formula))
    }

    /// Refuses a schema that is not well-formed: its JSON, its references, and the keywords that can be reached.
    pub fn check(
        schema: &str,
        resources: &[(String, String)],
        options: Options,
        json_limits: JsonLimits,
    ) -> Result<(), SchemaError> {
        Self::build(schema, resources, options, json_limits, None, None).map(|_| ())
    }

    /// Compiles without asking whether there is a value. The schema at `assumed` is taken to admit everything.
    fn build(
        schema: &str,
        resources: &[(String, String)],
        options: Options,
        json_limits: JsonLimits,
        alphabet: Option<CharSet>,
        assumed: Option<ValueId>,
    ) -> Result<(Algebra, Formula), SchemaError> {
        let mut json = Json::default();
        let root = json.parse(schema, json_limits)?;
        let mut documents = Vec::new();
        for (uri, text) in resources {
            documents.push((uri.clone(), json.parse(text, json_limits)?));
        }
        for (uri, text) in metaschemas::referred_to(&json) {
            if !documents.iter().any(|(known, _)| known == uri) {
                documents.push((uri.to_string(), json.parse(text, json_limits)?));
            }
        }
        let registry = Registry::new(&json, root, documents, options.draft)?;
        let mut languages = Languages::over(alphabet);
        languages.max_states = options.limits.max_automaton_states;
        languages.max_work = options.limits.max_automaton_work;
        let mut algebra = Algebra {
            languages,
            formulas: Formulas::default(),
            constants: Constants::default(),
            json,
            registry,
            options,
            compiled: FxMap::default(),
            assumed,
            left_out: Vec::new(),
            patterns: FxMap::default(),
            flat: FxMap::default(),
            restricted: FxMap::default(),
            restricting: Vec::new(),
            depends: usize::MAX,
            comparing: Vec::new(),
            naming: Vec::new(),
            text_languages: FxMap::default(),
            number_languages: FxMap::default(),
            shapes: FxMap::default(),
            specs: Vec::new(),
            spec_ids: FxMap::default(),
            objects: Default::default(),
            arrays: Default::default(),
            search: Search::default(),
            heap: 0,
            closed: closed::Memory::default(),
            orders: Orders::default(),
        };
        let formula = algebra.compile_document(root)?;
        Ok((algebra, formula))
    }

    /// The options of the compilation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.languages.memory_size()
            + self.formulas.memory_size()
            + self.constants.memory_size()
            + self.json.memory_size()
            + self.objects.memory_size()
            + self.arrays.memory_size()
            + self.search.memory_size()
            + self.closed.memory_size()
            + self.orders.memory_size()
            + self.registry.scopes.memory_size()
            + self.compiled.allocation_size()
            + self.patterns.allocation_size()
            + self.flat.allocation_size()
            + self.restricted.allocation_size()
            + self.text_languages.allocation_size()
            + self.number_languages.allocation_size()
            + self.shapes.allocation_size()
            + self.spec_ids.allocation_size()
            + self.heap
    }

    /// Values of one of two formulas.
    pub fn join_values(&mut self, a: Formula, b: Formula) -> Formula {
        self.formulas.or([a, b])
    }

    /// What may stand where a value of the formula is expected.
    pub fn shape(&mut self, f: Formula) -> Result<Arc<ValueShape>, SchemaError> {
        if let Some(shape) = self.shapes.get(&f) {
            return Ok(shape.clone());
        }
        // Schemas at many places that say the same have one shape.
        if let &Node::Schema { at, scope } = self.formulas.node(f) {
            let body = self.compile_schema(at, scope)?;
            if !matches!(self.formulas.node(body), Node::Schema { .. }) {
                let shape = self.shape(body)?;
                self.shapes.insert(f, shape.clone());
                return Ok(shape);
            }
        }
        let mut words = Vec::new();
        for (t, word) in [(Type::Null, "null"), (Type::False, "false"), (Type::True, "true")] {
            if self.restrict(f, t)? != Formula::FALSE {
                words.push(word);
            }
        }
        let words = self.languages.texts(words);
        let numbers = self.numbers(f)?;
        let numbers = if self.languages.is_viable(numbers)? { numbers } else { Language::EMPTY };
        let scalar = self.languages.union([words, numbers]);
        let text = self.texts(f)?;
        let text = self.languages.is_viable(text)?.then_some(text);
        let mut objects = Vec::new();
        for state in self.object_starts(f)? {
            if self.object_is_viable(state)? {
                objects.push(state);
            }
        }
        let array = self.restrict(f, Type::Array)?;
        let array = ArrayState { residual: array, index: 0 };
        let array = self.array_is_viable(array)?.then_some(array);
        self.heap += size_of::<ValueShape>() + 16 + objects.capacity() * size_of::<ObjectState>();
        let shape = Arc::new(ValueShape { scalar, text, objects, array });
        self.shapes.insert(f, shape.clone());
        Ok(shape)
    }

    /// The formula with everything decided that the type decides: only atoms of that type are left.
    pub(crate) fn restrict(&mut self, f: Formula, t: Type) -> Result<Formula, SchemaError> {
        if let Some(&known) = self.restricted.get(&(f, t)) {
            return Ok(known);
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.restrict_node(f, t))
    }

    fn restrict_node(&mut self, f: Formula, t: Type) -> Result<Formula, SchemaError> {
        work::spend(1)?;
        let outer = std::mem::replace(&mut self.depends, usize::MAX);
        let result = match self.formulas.node(f) {
            Node::False | Node::True => f,
            Node::Types(types) => {
                if types.has(t) {
                    Formula::TRUE
                } else {
                    Formula::FALSE
                }
            }
            Node::And(items) => {
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    let part = self.restrict(i, t)?;
                    if part == Formula::FALSE {
                        parts = vec![part];
                        break;
                    }
                    parts.push(part);
                }
                self.formulas.and(parts)
            }
            Node::Or(items) => {
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    parts.push(self.restrict(i, t)?);
                }
                self.formulas.or(parts)
            }
            &Node::Not(inner) => match self.formulas.node(inner) {
                &Node::Schema { at, scope } => self.restrict_schema(f, inner, at, scope, t)?,
                Node::One(_) | Node::OneOf(_) => {
                    let one = self.restrict(inner, t)?;
                    let none = self.formulas.not(one);
                    self.restrict(none, t)?
                }
                atom => match atom.atom_type() {
                    Some(other) if other != t => Formula::TRUE,
                    _ => f,
                },
            },
            &Node::Schema { at, scope } => self.restrict_schema(f, f, at, scope, t)?,
            Node::One(items) => {
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    parts.push(self.restrict(i, t)?);
                }
                self.exactly_one(f, parts, &FxMap::default(), t)?
            }
            Node::OneOf(items) => {
                let items = items.clone();
                let (mut parts, mut inner) = (Vec::with_capacity(items.len()), FxMap::default());
                for &(whole, part) in items.iter() {
                    let (whole, part) = (self.restrict(whole, t)?, self.restrict(part, t)?);
                    parts.push(whole);
                    inner.insert(whole, part);
                }
                self.exactly_one(f, parts, &inner, t)?
            }
            atom => match atom.atom_type() {
                Some(other) if other != t => Formula::FALSE,
                _ => f,
            },
        };
        if self.depends >= self.restricting.len() {
            self.restricted.insert((f, t), result);
            self.depends = outer;
        } else {
            self.depends = self.depends.min(outer);
        }
        Ok(result)
    }

    /// `f` is the schema node `schema` or its negation.
    fn restrict_schema(
        &mut self,
        f: Formula,
        schema: Formula,
        at: ValueId,
        scope: Scope,
        t: Type,
    ) -> Result<Formula, SchemaError> {
        if let Some(open) = self.restricting.iter().position(|&entry| entry == (f, t)) {
            // A schema that is defined by nothing but itself: the least solution is "no value". For a negation there is no
            // least solution, as it holds exactly where it does not.
            self.depends = self.depends.min(open);
            return Ok(Formula::FALSE);
        }
        let opposite = if f == schema { self.formulas.not(schema) } else { schema };
        if self.restricting.contains(&(opposite, t)) {
            return Err(SchemaError {
                kind: SchemaErrorKind::Invalid,
                message: format!("The schema at '{}' refers to its own negation", self.json.pointer(at)),
                pointer: self.json.pointer(at),
                keyword: "$ref".into(),
                hint: "Break the cycle of references that leads through 'not', 'oneOf' or 'if'".into(),
            });
        }
        let body = self.compile_schema(at, scope)?;
        let body = if f == schema { body } else { self.formulas.not(body) };
        self.restricting.push((f, t));
        let result = self.restrict(body, t);
        self.restricting.pop();
        result
    }

    /// Runs a question about other values in the middle of this one: nothing that is open here is open there.
    pub(crate) fn apart<T>(&mut self, ask: impl FnOnce(&mut Self) -> T) -> T {
        let restricting = std::mem::take(&mut self.restricting);
        let depends = std::mem::replace(&mut self.depends, usize::MAX);
        let pause = self.search.pause();
        let answer = ask(self);
        self.search.resume(pause);
        self.depends = depends;
        self.restricting = restricting;
        answer
    }

    /// The formula without references, if it speaks of nothing within arrays and objects; then its complement is as easy as
    /// itself.
    pub(crate) fn flat(&mut self, f: Formula) -> Option<Formula> {
        if let Some(&known) = self.flat.get(&f) {
            return known;
        }
        // A schema that leads back to itself is not.
        self.flat.insert(f, None);
        let flat = match self.formulas.node(f) {
            Node::True | Node::False | Node::Types(_) | Node::Text(_) | Node::Number(_) => Some(f),
            &Node::Not(inner) => self.flat(inner).map(|inner| self.formulas.not(inner)),
            node @ (Node::And(items) | Node::Or(items) | Node::One(items)) => {
                let (all, any) = (matches!(node, Node::And(_)), matches!(node, Node::Or(_)));
                let items = items.clone();
                let parts: Option<Vec<Formula>> = items.iter().map(|&i| self.flat(i)).collect();
                parts.map(|parts| match (all, any) {
                    (true, _) => self.formulas.and(parts),
                    (_, true) => self.formulas.or(parts),
                    _ => self.formulas.one(parts),
                })
            }
            Node::OneOf(items) => {
                let items = items.clone();
                let wholes: Option<Vec<Formula>> = items.iter().map(|&(whole, _)| self.flat(whole)).collect();
                let parts: Option<Vec<Formula>> = items.iter().map(|&(_, part)| self.flat(part)).collect();
                wholes.zip(parts).map(|(wholes, parts)| {
                    let one = self.formulas.one(wholes);
                    let part = self.formulas.or(parts);
                    self.formulas.and([one, part])
                })
            }
            &Node::Schema { at, scope } => match self.compile_schema(at, scope) {
                Ok(body) => stacker::maybe_grow(64 << 10, 1 << 20, || self.flat(body)),
                // It is reported where it is needed.
                Err(_) => None,
            },
            _ => None,
        };
        self.flat.insert(f, flat);
        flat
    }

    /// Whether it is easy to see that no value satisfies the formula.
    pub(crate) fn is_absurd(&mut self, f: Formula) -> Result<bool, SchemaError> {
        Ok(self.flat(f).is_some() && !self.is_satisfiable(f)?)
    }

    /// The language of the strings that the formula admits, decoded.
    pub(crate) fn texts(&mut self, f: Formula) -> Result<Language, SchemaError> {
        let f = self.restrict(f, Type::String)?;
        self.text_language(f)
    }

    fn text_language(&mut self, f: Formula) -> Result<Language, SchemaError> {
        if let Some(&known) = self.text_languages.get(&f) {
            return Ok(known);
        }
        let language = match self.formulas.node(f) {
            Node::False => Language::EMPTY,
            Node::True => Language::ALL,
            &Node::Text(language) => language,
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    parts.push(self.text_language(i)?);
                }
                if all { self.languages.and(parts) } else { self.union_of_texts(parts) }
            }
            &Node::Not(inner) => {
                let inner = self.text_language(inner)?;
                self.languages.not(inner)
            }
            other => unreachable_atom(other)?,
        };
        self.languages.check_limit()?;
        self.text_languages.insert(f, language);
        Ok(language)
    }

    /// The union, in which all lists of texts are one list.
    fn union_of_texts(&mut self, parts: Vec<Language>) -> Language {
        let (lists, mut others): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|&l| self.languages.as_texts(l).is_some());
        if lists.len() < 2 {
            return self.languages.union(lists.into_iter().chain(others));
        }
        let mut texts: Vec<String> = Vec::new();
        for list in lists {
            texts.extend(self.languages.as_texts(list).into_iter().flatten().map(String::from));
        }
        others.push(self.languages.texts(texts.iter().map(|text| &**text)));
        self.languages.union(others)
    }

    /// The spellings of the numbers that the formula admits.
    pub(crate) fn numbers(&mut self, f: Formula) -> Result<Language, SchemaError> {
        let f = self.restrict(f, Type::Number)?;
        self.number_language(f)
    }
}

/// A formula restricted to one type holds atoms of that type only; anything else is a fault of this crate, and it is
/// reported instead of being let through.
pub(crate) fn unreachable_atom<T>(node: &Node) -> Result<T, SchemaError> {
    Err(SchemaError {
        kind: SchemaErrorKind::Unsupported,
        message: format!("An internal formula has an unexpected part ({node:?})"),
        pointer: String::new(),
        keyword: "".into(),
        hint: "Please report this schema as a bug".into(),
    })
}
