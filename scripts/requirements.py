"""Print the dependencies that pyproject.toml names, a line each: the package's own, or those of an extra.

    python scripts/requirements.py [EXTRA]

With them installed, the package's code can be linted and its tests collected before the extension is built.
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # maturin brings it

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
names = project["optional-dependencies"][sys.argv[1]] if len(sys.argv) > 1 else project["dependencies"]
print("\n".join(names))
