# `make run` and `make test` set up everything they need, in .venv of this checkout.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check lint types docs candidates some-candidates ordinary adapters setup clean

run: setup
	$(BIN)/python run_eval.py

# Three at a time on two cores: a test that waits for processes leaves its core to others. The corpus goes by itself:
# its cheats and twins are timed, and it looks for files that anybody has changed.
test: setup
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m 'not gpu and not alone'
	$(BIN)/python -m pytest -m 'not gpu and alone'

check: lint types test

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

# The site, in build/docs; a link that leads nowhere, or a page that nothing lists, is an error.
docs: setup
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/docs
	@echo "open build/docs/index.html"

# Every candidate of the repository, and the specimens with CUDA sources: compiled and loaded, no card needed.
candidates: setup
	$(BIN)/python run_eval.py check solutions 'tests/corpus/solutions/*/*/*/cuda_*.py' --jobs 2

# The first one with CUDA of each set of problems.
some-candidates: setup
	$(BIN)/python run_eval.py check $$(for folder in solutions/*/ tests/corpus/solutions/*/; do \
	    grep -rl --include='*.py' __global__ "$$folder" | sort | head -n 1; done) --jobs 2

# What touches processes, files, signals and limits, by a user who is not root: there candidates share a user with the
# harness. Under root, as in CI, a user is made up for it.
ROWS := processes files network memory messages resources crash build
ordinary: setup
	$(BIN)/python scripts/as_ordinary_user.py $(BIN)/python benchmarks/detection.py --without-builds $(ROWS:%=--row %) --row "slow baseline"

# The adapters for training frameworks, against the real packages, in an environment of their own.
adapters: .venv/adapters/ready
	.venv/adapters/bin/python -m pytest tests/adapters

.venv/adapters/ready: requirements-adapters.txt scripts/setup_adapters.py .venv/ready
	$(BIN)/python scripts/setup_adapters.py
	@touch $@

setup: .venv/ready

.venv/ready: pyproject.toml requirements.txt scripts/setup_venv.py
	$(PYTHON) scripts/setup_venv.py
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build/docs build/doctrees
