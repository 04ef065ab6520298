//! Copies of languages from one store to another.

use crate::languages::{FxMap, Language, Languages, Node};

/// Languages of one store that were copied to another.
#[derive(Debug, Default)]
pub struct Copies(FxMap<Language, Language>);

impl Copies {
    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.0.allocation_size()
    }
}

impl Languages {
    /// The same language, known in another store, in this one; without characters that this store cannot write.
    pub fn copy(&mut self, from: &Languages, id: Language) -> Language {
        self.copy_with(from, id, &mut FxMap::default())
    }

    /// The same, of which what was copied before is known.
    pub fn copy_known(&mut self, from: &Languages, id: Language, copies: &mut Copies) -> Language {
        self.copy_with(from, id, &mut copies.0)
    }

    fn copy_with(&mut self, from: &Languages, id: Language, known: &mut FxMap<Language, Language>) -> Language {
        if id.index() <= Language::ALL.index() {
            return id;
        }
        if let Some(&copy) = known.get(&id) {
            return copy;
        }
        let mut all = |store: &mut Self, items: &[Language]| -> Vec<Language> {
            items.iter().map(|&item| store.copy_with(from, item, known)).collect()
        };
        let copy = match from.node(id) {
            Node::Empty => Language::EMPTY,
            Node::Epsilon => Language::EPSILON,
            Node::Set(set) => self.set(from.sets[*set as usize].clone()),
            Node::Concat(..) => {
                // The spine is as long as a pattern.
                let (mut parts, mut at) = (Vec::new(), id);
                while let Node::Concat(head, tail) = *from.node(at) {
                    parts.push(head);
                    at = tail;
                }
                parts.push(at);
                let parts = all(self, &parts);
                self.sequence(parts)
            }
            Node::Union(items) => {
                let items = all(self, items);
                self.union(items)
            }
            Node::And(items) => {
                let items = all(self, items);
                self.and(items)
            }
            Node::Not(inner) => {
                let inner = self.copy_with(from, *inner, known);
                self.not(inner)
            }
            Node::Repeat(body, min, max) => {
                let body = self.copy_with(from, *body, known);
                self.repeat(body, *min, *max)
            }
            Node::Texts { list, lo, hi, depth } => self.texts(from.lists[*list as usize].rests(*lo, *hi, *depth)),
            Node::Look(look, inner) => {
                let inner = self.copy_with(from, *inner, known);
                self.look(*look, inner)
            }
            Node::Here => self.intern(Node::Here),
            Node::Machine(machine, state) => self.machine_at(from.machines[*machine as usize].clone(), state.clone()),
        };
        known.insert(id, copy);
        copy
    }
}

#[cfg(test)]
mod tests {
    use crate::languages::Languages;
    use crate::{formats, pattern};

    #[test]
    fn a_copy_has_the_same_texts_and_the_same_fingerprint() {
        let mut from = Languages::new();
        let texts = ["", "cat", "a1", "2024-02-29", "2023-02-29", "x.y", "é", "abc-", "aaaa"];
        for source in [r"\bcat\b|\d{4}-.*", "(?=a)a+(?!b)", "[^a-c]{2,}|x\\.y", "(a|b)*a(a|b){2}"] {
            let language = pattern::parse(source, &pattern::Options::default()).unwrap().full(&mut from).unwrap();
            let date = formats::language("date", &mut from).unwrap();
            for language in [language, from.not(language), from.difference(language, date), date] {
                let mut to = Languages::new();
                to.literal("something else");
                let copy = to.copy(&from, language);
                assert_eq!(to.fingerprint(copy), from.fingerprint(language), "{source}");
                for text in texts {
                    assert_eq!(to.matches(copy, text), from.matches(language, text), "{source} {text}");
                }
            }
        }
    }
}
