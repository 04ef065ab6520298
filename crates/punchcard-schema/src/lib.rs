//! Punchcard: schema.
