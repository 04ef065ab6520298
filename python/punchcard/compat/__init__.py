"""Other libraries' names over Punchcard, for programs that were written for them."""
