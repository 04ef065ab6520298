//! Configurations of one machine in another that was made from the same schema.

use super::machine::{Frame, FxMap, Machine, Reading, StackId};
use super::names::TypedId;
use crate::automaton::ConfigId;
use crate::leaf::LeafId;
use punchcard_schema as schema;

/// What was carried over so far.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    algebra: schema::Carried,
    stacks: FxMap<StackId, StackId>,
    typed: FxMap<TypedId, TypedId>,
}

impl Carried {
    pub(crate) fn memory_size(&self) -> usize {
        self.algebra.memory_size() + self.stacks.allocation_size() + self.typed.allocation_size()
    }
}

impl Machine {
    /// Carries a configuration over.
    pub(crate) fn carry(&mut self, from: &Machine, config: ConfigId, carried: &mut Carried) -> ConfigId {
        let readings = from.readings_of(config).iter();
        let mut readings = readings.map(|&reading| self.carry_reading(from, reading, carried)).collect();
        self.config(&mut readings)
    }

    fn carry_reading(&mut self, from: &Machine, reading: Reading, carried: &mut Carried) -> Reading {
        let Reading { frame, parent, noted } = reading;
        Reading {
            frame: self.carry_frame(from, frame, carried),
            parent: self.carry_stack(from, parent, carried),
            noted: self.carry_typed(from, noted, carried),
        }
    }

    fn carry_stack(&mut self, from: &Machine, stack: StackId, carried: &mut Carried) -> StackId {
        // Stacks may be deep.
        let (mut frames, mut at) = (Vec::new(), stack);
        let mut below = loop {
            if at == StackId::BOTTOM {
                break at;
            }
            if let Some(&known) = carried.stacks.get(&at) {
                break known;
            }
            let (frame, parent) = from.top(at);
            frames.push((at, frame));
            at = parent;
        };
        for (old, frame) in frames.into_iter().rev() {
            let frame = self.carry_frame(from, frame, carried);
            below = self.push(frame, below);
            carried.stacks.insert(old, below);
        }
        below
    }

    fn carry_typed(&mut self, from: &Machine, typed: TypedId, carried: &mut Carried) -> TypedId {
        let (mut chars, mut at) = (Vec::new(), typed);
        let mut text = loop {
            if at == TypedId::NONE || at == TypedId::EMPTY {
                break at;
            }
            if let Some(&known) = carried.typed.get(&at) {
                break known;
            }
            let (before, last) = from.typed.last(at);
            chars.push(last);
            at = before;
        };
        for &c in chars.iter().rev() {
            text = self.typed.push(text, c);
        }
        carried.typed.insert(typed, text);
        text
    }

    fn carry_leaf(&mut self, from: &Machine, leaf: LeafId, carried: &mut Carried) -> LeafId {
        let Machine { algebra, leaves, .. } = self;
        leaves.carry(&from.leaves, leaf, |id| algebra.carry_language(&from.algebra, id, &mut carried.algebra))
    }

    fn carry_frame(&mut self, from: &Machine, frame: Frame, carried: &mut Carried) -> Frame {
        let algebra = &mut self.algebra;
        let space = algebra.carry_language(&from.algebra, frame.space(), &mut carried.algebra);
        match frame {
            Frame::End { .. } => Frame::End { space },
            Frame::Value { formula, .. } => {
                Frame::Value { formula: algebra.carry_formula(&from.algebra, formula, &mut carried.algebra), space }
            }
            Frame::Scalar { leaf } => Frame::Scalar { leaf: self.carry_leaf(from, leaf, carried) },
            Frame::Text { leaf } => Frame::Text { leaf: self.carry_leaf(from, leaf, carried) },
            Frame::Object { state, phase, .. } => {
                Frame::Object { state: algebra.carry_object(&from.algebra, state, &mut carried.algebra), phase, space }
            }
            Frame::Key { state, leaf, typed } => Frame::Key {
                state: algebra.carry_object(&from.algebra, state, &mut carried.algebra),
                leaf: self.carry_leaf(from, leaf, carried),
                typed: self.carry_typed(from, typed, carried),
            },
            Frame::Colon { next, value, .. } => Frame::Colon {
                next: algebra.carry_object(&from.algebra, next, &mut carried.algebra),
                value: algebra.carry_formula(&from.algebra, value, &mut carried.algebra),
                space,
            },
            Frame::Array { state, phase, item, .. } => Frame::Array {
                state: algebra.carry_array(&from.algebra, state, &mut carried.algebra),
                phase,
                space,
                item,
            },
        }
    }
}
