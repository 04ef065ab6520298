"""Tokenizer files under atheris; see driver.py."""

from driver import run

if __name__ == "__main__":
    run("test_fuzz_tokenizers", "punchcard.tokenizers")
