"""``python -m punchcard``: the command ``punchcard``."""

from punchcard.cli import main

if __name__ == "__main__":
    main(prog_name="python -m punchcard")
