//! JSON under a schema.
//!
//! [`machine`] reads bytes, and [`names`] what is typed of member names; [`mask`], with [`leaf_mask`] and [`string_mask`], lifts it
//! to tokens; [`completion`] finds an end from anywhere.

mod carry;
pub mod completion;
pub mod leaf_mask;
pub mod machine;
pub mod mask;
pub mod names;
pub mod string_mask;
mod walked;

pub(crate) use carry::Carried;
pub use machine::Machine;
pub(crate) use machine::Reading;
