//! From the tree of a pattern to a language.
//!
//! Most assertions of real patterns stand where the context decides them: `^(a|b)$`, `^$|^https:`, `^(?!tmp$)[a-z]+$`. So a
//! part is lowered for a *context*: whether the text begins at its left edge, whether it ends at its right edge, and
//! whether only its empty matches, only the others or all are wanted. Within a context, `^` and `$` are true or false; where
//! nothing comes after a part, a look-ahead in it is an intersection, and where nothing comes before, so is a look-behind.
//! A concatenation splits into cases only where a part next to an assertion may or may not be empty. What then is left
//! (an assertion in a loop, or in the middle of a text) becomes an assertion of the store, which derivatives evaluate.
//!
//! There are twelve contexts, and results are kept by part and context, so the work is linear in the size of the pattern.

use super::syntax::{Node, NodeId, Tree};
use crate::languages::{Language, Languages, Look, UNBOUNDED};
use hashbrown::{HashMap, HashSet};

/// Which matches of a part are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Want {
    All,
    /// Only the empty text.
    Empty,
    /// All but the empty text.
    Some,
}

/// Where a part stands. If it matches nothing, both edges are one place; otherwise the text neither begins at its right edge nor
/// ends at its left one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Context {
    /// The text begins at the left edge (otherwise it certainly does not).
    begins: bool,
    /// The text ends at the right edge.
    ends: bool,
    want: Want,
}

/// What is known of the rest of a concatenation.
#[derive(Clone, Copy)]
struct Rest {
    can_be_empty: bool,
    zero_width: bool,
    left_sensitive: bool,
}

pub(super) struct Lowering<'a> {
    tree: &'a Tree,
    languages: &'a mut Languages,
    known: HashMap<(NodeId, Context), Language>,
}

/// The language of the texts that `root` matches from their beginning to their end.
pub(super) fn lower(tree: &Tree, root: NodeId, languages: &mut Languages) -> Language {
    let mut lowering = Lowering { tree, languages, known: HashMap::new() };
    lowering.part(root, Context { begins: true, ends: true, want: Want::All })
}

impl Lowering<'_> {
    fn part(&mut self, id: NodeId, mut context: Context) -> Language {
        let facts = self.tree.facts(id);
        match context.want {
            Want::Empty if !facts.can_be_empty => return Language::EMPTY,
            Want::Some if facts.zero_width => return Language::EMPTY,
            Want::Some if !facts.can_be_empty => context.want = Want::All,
            Want::All if facts.zero_width => context.want = Want::Empty,
            _ => {}
        }
        if !facts.asserts {
            (context.begins, context.ends) = (false, false);
        }
        if let Some(&known) = self.known.get(&(id, context)) {
            return known;
        }
        let language = match self.tree.node(id) {
            Node::Set(set) => self.languages.set(set.clone()),
            Node::Text(text) if text.is_empty() => Language::EPSILON,
            Node::Text(text) => self.languages.literal(text),
            Node::Anything => match context.want {
                Want::Empty => Language::EPSILON,
                Want::Some => self.languages.length(1, UNBOUNDED),
                Want::All => Language::ALL,
            },
            Node::Concat(items) => match *items.as_slice() {
                [before, last] if context.begins && matches!(self.tree.node(last), Node::Look { behind: true, .. }) => {
                    self.looking_back(before, last, context)
                }
                _ => self.concat(items, context),
            },
            Node::Alternation(items) => {
                let parts: Vec<Language> = items.iter().map(|&i| self.part(i, context)).collect();
                self.union(parts)
            }
            &Node::Repeat(inner, min, max) => self.repeat(inner, min, max, context),
            Node::Start => if_true(context.begins),
            Node::End => if_true(context.ends),
            &Node::Look { behind, negated, inner } => self.look(behind, negated, inner, context),
        };
        self.known.insert((id, context), language);
        language
    }

    /// The union, with all finite lists of texts in it as one, and one-character texts as a set.
    fn union(&mut self, parts: Vec<Language>) -> Language {
        if let [one] = *parts.as_slice() {
            return one;
        }
        let (mut texts, mut others) = (HashSet::new(), Vec::new());
        for part in parts {
            match self.languages.as_texts(part) {
                Some(list) => texts.extend(list.into_iter().map(String::from)),
                None => others.push(part),
            }
        }
        let single = |text: &String| text.chars().nth(1).is_none() && !text.is_empty();
        let mut set = Vec::new();
        if texts.len() > 1 && (!others.is_empty() || texts.iter().all(single)) {
            set = texts.iter().filter(|t| single(t)).flat_map(|t| t.chars()).map(|c| (c as u32, c as u32)).collect();
            texts.retain(|t| !single(t));
        }
        let set = self.languages.set(set.into_iter().collect());
        let empty = if !others.is_empty() && texts.remove("") { Language::EPSILON } else { Language::EMPTY };
        let texts = self.languages.texts(texts.iter().map(String::as_str));
        self.languages.union(others.into_iter().chain([set, empty, texts]))
    }

    // ---- concatenation ----

    /// `before` and then a look-behind `last`, at the beginning of the text: an intersection, unless `before` also has to
    /// see what comes after it.
    fn looking_back(&mut self, before: NodeId, last: NodeId, context: Context) -> Language {
        let Node::Look { negated, inner, .. } = *self.tree.node(last) else { return Language::EMPTY };
        let left = self.part(before, context);
        let seen = self.part(inner, Context { begins: true, ends: context.ends, want: Want::All });
        if self.languages.looks_ahead(left) || self.languages.looks_ahead(seen) {
            return self.concat(&[before, last], context);
        }
        let seen = if negated { self.languages.not(seen) } else { seen };
        self.languages.and([left, seen])
    }

    /// Two passes over the items, so that no pattern is too long: first what is wanted of each rest, from the left; then
    /// the languages of the rests, from the right.
    fn concat(&mut self, items: &[NodeId], context: Context) -> Language {
        let mut rests = vec![Rest { can_be_empty: true, zero_width: true, left_sensitive: false }];
        for &item in items.iter().rev() {
            let (facts, rest) = (self.tree.facts(item), rests[rests.len() - 1]);
            rests.push(Rest {
                can_be_empty: facts.can_be_empty && rest.can_be_empty,
                zero_width: facts.zero_width && rest.zero_width,
                left_sensitive: facts.left_sensitive || facts.can_be_empty && rest.left_sensitive,
            });
        }
        rests.reverse();
        let mut wanted: Vec<Vec<(bool, Want)>> = vec![Vec::new(); items.len() + 1];
        wanted[0].push((context.begins, context.want));
        for (i, &item) in items.iter().enumerate() {
            for (begins, want) in wanted[i].clone() {
                for (_, next) in self.cases(item, rests[i + 1], Context { begins, want, ..context }) {
                    if !wanted[i + 1].contains(&next) {
                        wanted[i + 1].push(next);
                    }
                }
            }
        }
        // After the last item comes nothing.
        let mut done: Vec<((bool, Want), Language)> =
            wanted[items.len()].iter().map(|&key| (key, if_true(key.1 != Want::Some))).collect();
        for (i, &item) in items.iter().enumerate().rev() {
            let mut here = Vec::with_capacity(wanted[i].len());
            for &(begins, want) in &wanted[i] {
                let context = Context { begins, want, ..context };
                let mut parts = Vec::new();
                for (left, key) in self.cases(item, rests[i + 1], context) {
                    let right = done.iter().find(|(k, _)| *k == key).map_or(Language::EMPTY, |&(_, l)| l);
                    if right == Language::EMPTY {
                        continue;
                    }
                    parts.push(match self.tree.node(item) {
                        &Node::Look { behind: false, negated, inner } if context.ends => {
                            let seen = self.part(inner, Context { begins, ends: true, want: Want::All });
                            let seen = if negated { self.languages.not(seen) } else { seen };
                            self.languages.and([seen, right])
                        }
                        _ => {
                            let left = self.part(item, left);
                            self.languages.concat(left, right)
                        }
                    });
                }
                let language = self.union(parts);
                here.push(((begins, want), language));
            }
            done = here;
        }
        done.first().map_or(Language::EMPTY, |&(_, language)| language)
    }

    /// The ways in which an item and the rest after it make up what is wanted: the context of the item, and of the rest
    /// whether the text begins there and what is wanted. The cases differ only as far as it matters to their assertions.
    fn cases(&self, item: NodeId, rest: Rest, context: Context) -> Vec<(Context, (bool, Want))> {
        let facts = self.tree.facts(item);
        let Context { begins, ends, want } = context;
        if ends && matches!(self.tree.node(item), Node::Look { behind: false, .. }) {
            // To become an intersection with the rest, whatever that is.
            return vec![(Context { want: Want::Empty, ..context }, (begins, want))];
        }
        // Does it matter to the item whether the rest is empty, and to the rest whether the item is?
        let item_asks = facts.right_sensitive && ends && rest.can_be_empty && !rest.zero_width;
        let rest_asks = rest.left_sensitive && begins && facts.can_be_empty && !facts.zero_width;
        let items: &[Want] = match (rest_asks, want) {
            (_, Want::Empty) => &[Want::Empty],
            (false, Want::All) => &[Want::All],
            _ => &[Want::Empty, Want::Some],
        };
        let mut cases = Vec::new();
        for &left in items {
            let nothing_yet = want == Want::Some && left == Want::Empty;
            let rests: &[Want] = match (item_asks, want) {
                (_, Want::Empty) => &[Want::Empty],
                (true, _) if nothing_yet => &[Want::Some],
                (true, _) => &[Want::Empty, Want::Some],
                (false, _) if nothing_yet => &[Want::Some],
                (false, _) => &[Want::All],
            };
            for &right in rests {
                let possible = |want, can_be_empty: bool, zero_width: bool| match want {
                    Want::All => true,
                    Want::Empty => can_be_empty,
                    Want::Some => !zero_width,
                };
                if !possible(left, facts.can_be_empty, facts.zero_width)
                    || !possible(right, rest.can_be_empty, rest.zero_width)
                {
                    continue;
                }
                let item_ends = ends && (right == Want::Empty || rest.zero_width);
                let rest_begins = begins && (left == Want::Empty || facts.zero_width);
                cases.push((Context { begins, ends: item_ends, want: left }, (rest_begins, right)));
            }
        }
        cases
    }

    // ---- repetition ----

    fn repeat(&mut self, inner: NodeId, min: u32, max: u32, context: Context) -> Language {
        let Context { begins, ends, want } = context;
        let facts = self.tree.facts(inner);
        // If it does not matter which round comes first or last, all are alike.
        let begins = begins && (facts.left_sensitive || max == 1);
        let ends = ends && (facts.right_sensitive || max == 1);
        let mut round = |begins, ends, want| self.part(inner, Context { begins, ends, want });
        if !facts.asserts {
            return match want {
                Want::Empty => if_true(min == 0 || facts.can_be_empty),
                Want::All => {
                    let round = round(false, false, Want::All);
                    self.languages.repeat(round, min, max)
                }
                Want::Some => {
                    let round = round(false, false, Want::Some);
                    self.languages.repeat(round, if facts.can_be_empty { 1 } else { min.max(1) }, max)
                }
            };
        }
        let none = if min == 0 { Language::EPSILON } else { round(begins, ends, Want::Empty) };
        if want == Want::Empty {
            return none;
        }
        // How many rounds that match something it takes: the others may be empty, if an assertion lets them.
        let mut may_be_empty = |begins, ends| round(begins, ends, Want::Empty) != Language::EMPTY;
        let least = if min <= 1 || may_be_empty(begins, false) || may_be_empty(false, ends) {
            1
        } else if may_be_empty(false, false) {
            2
        } else {
            min
        };
        let only = round(begins, ends, Want::Some);
        let first = round(begins, false, Want::Some);
        let middle = round(false, false, Want::Some);
        let last = round(false, ends, Want::Some);
        let mut parts = Vec::new();
        if want == Want::All {
            parts.push(none);
        }
        let fewer = |n: u32, by: u32| if n == UNBOUNDED { n } else { n.saturating_sub(by) };
        if max == 1 {
            parts.push(only);
        } else if first == middle && last == middle && only == middle {
            parts.push(self.languages.repeat(middle, least, max));
        } else if first == middle && only == last {
            let rounds = self.languages.repeat(middle, least - 1, fewer(max, 1));
            parts.push(self.languages.concat(rounds, last));
        } else if last == middle && only == first {
            let rounds = self.languages.repeat(middle, least - 1, fewer(max, 1));
            parts.push(self.languages.concat(first, rounds));
        } else {
            if least <= 1 {
                parts.push(only);
            }
            let rounds = self.languages.repeat(middle, least.max(2) - 2, fewer(max, 2));
            parts.push(self.languages.sequence([first, rounds, last]));
        }
        self.union(parts)
    }

    // ---- assertions ----

    fn look(&mut self, behind: bool, negated: bool, inner: NodeId, context: Context) -> Language {
        let seen = if behind {
            self.part(inner, Context { begins: true, ends: context.ends, want: Want::All })
        } else {
            self.part(inner, Context { begins: context.begins, ends: true, want: Want::All })
        };
        let decided = if behind { context.begins } else { context.ends };
        if decided && !self.languages.looks(seen) {
            return if_true(self.languages.is_nullable(seen) != negated);
        }
        self.languages.look(Look { behind, negated }, seen)
    }
}

fn if_true(condition: bool) -> Language {
    if condition { Language::EPSILON } else { Language::EMPTY }
}
