//! Punchcard: local.
