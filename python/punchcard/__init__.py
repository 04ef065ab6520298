"""Punchcard: constrained decoding for language models."""
