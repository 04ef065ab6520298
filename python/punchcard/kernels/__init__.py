"""Kernels for accelerators, each in a module named after what it is written in; imported where they are used."""
