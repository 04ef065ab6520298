//! Punchcard: automata.
