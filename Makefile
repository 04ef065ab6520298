# Every target does all of its own set-up, from a fresh clone on a machine with cargo, CPython 3.10 or newer, and a C
# compiler. What is done once is remembered in .venv/*.stamp, and done again only when its sources change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

# A build server starts from a fresh clone each time: it keeps what it compiled outside of the clone.
ifeq ($(CI),true)
CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/punchcard/target
export CARGO_INCREMENTAL := 0
endif
ifdef CARGO_TARGET_DIR
export CARGO_TARGET_DIR
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export PIP_QUIET := 1

# pip install of the dependencies that pyproject.toml names, without the package itself ($(1): an extra, or nothing).
define install
$(BIN)/python scripts/requirements.py $(1) > $(VENV)/requirements.txt
$(BIN)/pip install -q -r $(VENV)/requirements.txt
endef

.PHONY: help demo test test-rust test-python lint format instructions build bench clean

help:
	@echo "make demo    a language model answers a request with a tool call"
	@echo "make test    all tests, Rust and Python"
	@echo "make lint    formatting, lints, types"
	@echo "make format  rewrite the sources as lint wants them"
	@echo "make instructions  counts what compiling and masks take, and compares; wants valgrind"
	@echo "make build   a wheel, in dist/"
	@echo "make bench   measure beside other engines, for docs/performance.md (BENCH_FLAGS=--quick: a small part)"
	@echo "make clean   remove what these made in this folder"

demo: $(VENV)/built.stamp
	$(BIN)/punchcard run "Dim the kitchen lights to 10%" --tools examples/home.py

# pytest comes last, so that its closing line closes the whole.
test: test-rust test-python

# The engine is tested with overflow checks and debug assertions. The model runtime, where an unoptimised build is some
# fifty times slower, shares the optimised build of the extension.
test-rust: $(VENV)/built.stamp
	cargo test -q --workspace --exclude punchcard-local --exclude punchcard-py
	cargo test -q --release -p punchcard-local -p punchcard-fuzzing --features punchcard-fuzzing/local

test-python: test-rust $(VENV)/built.stamp $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	cargo fmt --all --check
	cargo clippy -q --workspace --all-targets -- -D warnings

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .
	cargo fmt --all

# Where valgrind is missing, it says so and succeeds.
instructions:
	$(PYTHON) scripts/instructions.py

build: $(VENV)/run.stamp
	$(BIN)/maturin build --release --out dist

# The peers have an environment of their own. It gets the wheel of `make build`, as a user would.
bench: $(BENCH)/built.stamp
	$(BENCH)/bin/python benchmarks/masks.py --sample 400 $(BENCH_FLAGS) $(BENCH_DATA:%=--data %)
	$(BENCH)/bin/python benchmarks/growth.py $(BENCH_FLAGS) $(BENCH_DATA:%=--data %)
	$(BENCH)/bin/python benchmarks/batches.py $(BENCH_FLAGS) $(BENCH_DATA:%=--data %)
	$(BENCH)/bin/python benchmarks/grammars.py $(BENCH_FLAGS)
	$(BENCH)/bin/python benchmarks/setup.py $(BENCH_FLAGS)
	$(BENCH)/bin/python benchmarks/report.py $(BENCH_FLAGS)

clean:
	rm -rf $(VENV) $(BENCH) dist target python/punchcard/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/run.stamp: pyproject.toml scripts/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q "maturin>=1.8,<2"
	$(call install)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(call install,dev)
	@touch $@

$(BENCH)/peers.stamp: $(VENV)/run.stamp
	$(PYTHON) -m venv $(BENCH)
	$(BIN)/python scripts/requirements.py > $(BENCH)/requirements.txt
	$(BIN)/python scripts/requirements.py bench >> $(BENCH)/requirements.txt
	$(BENCH)/bin/pip install -q -r $(BENCH)/requirements.txt
	@touch $@

$(BENCH)/built.stamp: $(BENCH)/peers.stamp $(RUST) $(shell find python -name '*.py')
	$(MAKE) build
	$(BENCH)/bin/pip install -q --no-deps --no-index --force-reinstall --find-links dist punchcard
	@touch $@

$(VENV)/built.stamp: $(VENV)/run.stamp $(RUST)
	@command -v cargo > $(VENV)/cargo.txt || { echo "cargo is needed, Rust's build tool"; exit 1; }
	$(BIN)/maturin develop --release -q
	@touch $@
