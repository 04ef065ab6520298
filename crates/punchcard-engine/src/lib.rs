//! Punchcard: engine.
