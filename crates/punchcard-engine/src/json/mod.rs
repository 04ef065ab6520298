//! JSON under a schema.
//!
//! [`machine`] reads bytes, [`mask`] lifts it to tokens, [`completion`] finds an end from anywhere.

pub mod completion;
pub mod machine;
pub mod mask;

pub use machine::Machine;
