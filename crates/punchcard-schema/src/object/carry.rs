//! Objects of one algebra in another that was made from the same schema.

use super::ObjectState;
use super::spec::{NameClass, NamePattern, ObjectSpec};
use crate::algebra::Algebra;
use crate::carry::Carried;
use crate::formula::{Formula, Name};
use std::sync::Arc;

impl Algebra {
    /// Carries what a formula says of objects over, as it is: found anew, the order of its names might be another one.
    pub(crate) fn carry_spec(&mut self, from: &Algebra, state: ObjectState, carried: &mut Carried) -> u32 {
        if let Some(&known) = carried.specs.get(&state.spec) {
            return known;
        }
        let spec = from.specs[state.spec as usize].clone();
        let names = |a: &mut Self, names: &[Name]| -> Vec<Name> {
            names.iter().map(|&name| a.carry_name(from, name)).collect()
        };
        let order = names(self, &spec.order);
        let place = order.iter().enumerate().map(|(place, &name)| (name, place as u32)).collect();
        let others = names(self, &spec.others);
        let by_name = spec.by_name.iter().map(|(&name, values)| {
            let values: Vec<Formula> = values.iter().map(|&f| self.carry_formula(from, f, carried)).collect();
            (self.carry_name(from, name), values)
        });
        let by_name = by_name.collect();
        let by_pattern = spec.by_pattern.iter().map(|pattern| NamePattern {
            names: self.carry_language(from, pattern.names, carried),
            beginning: pattern.beginning.clone(),
            value: self.carry_formula(from, pattern.value, carried),
        });
        let by_pattern = by_pattern.collect();
        let classes = spec.classes.iter().map(|class| NameClass {
            names: self.carry_language(from, class.names, carried),
            beginning: class.beginning.clone(),
            example: self.carry_name(from, class.example),
            size: class.size,
        });
        let classes = classes.collect();
        let copy = ObjectSpec {
            of: self.carry_formula(from, spec.of, carried),
            order,
            place,
            others,
            by_name,
            by_pattern,
            classes,
            unspoken: self.carry_language(from, spec.unspoken, carried),
            spoken: spec.spoken.clone(),
            initial: self.carry_formula(from, spec.initial, carried),
        };
        let id = match self.spec_ids.get(&copy.of) {
            Some(&known) if *self.specs[known as usize] == copy => known,
            _ => {
                let (id, of) = (self.specs.len() as u32, copy.of);
                self.heap += copy.memory_size();
                self.specs.push(Arc::new(copy));
                self.spec_ids.entry(of).or_insert(id);
                id
            }
        };
        carried.specs.insert(state.spec, id);
        id
    }

    /// The state with the names that the object already has. Its residual is still that of the other algebra.
    pub(crate) fn carry_seen(&mut self, from: &Algebra, state: ObjectState, spec: u32) -> ObjectState {
        let names = from.objects.seen.names(state.seen).map(|name| self.carry_name(from, name)).collect();
        let seen = self.objects.seen.of(&self.formulas, names);
        ObjectState { spec, seen, ..state }
    }
}
