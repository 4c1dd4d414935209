# Everything a newcomer needs: `make demo` and `make test`. Needs Python 3.11 or newer and make.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
TYPES = $(VENV)-types
EXTRAS = '.[demo,docs,test,lint]'
# A third of pip's time; where it cannot reach the registry that pip is set up for, pip does it.
UV = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt

.PHONY: demo dev test docs lint fmt check benchmarks constraints changelog screenshots clean

# Tell the life of a real dataset, end to end.
demo: $(INSTALLED)
	$(BIN)/datasource-governance demo

# Run Postgres, the Dagster UI, the daemon and the code location until Ctrl-C.
dev: $(INSTALLED)
	$(BIN)/datasource-governance dev

# Run every test against a real Postgres, real Dagster and, where a page is shown, a real browser.
# The tests start hundreds of interpreters, which need not compile the package each time. They often
# wait for those, so three workers keep two cores busy; files with slow tests come first.
test: $(INSTALLED)
	$(BIN)/python -m compileall -q datasource_governance
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

# Build the docs site into docs/_build/html; a warning fails it.
docs: $(INSTALLED)
	$(BIN)/sphinx-build -q -W --keep-going -E -d docs/_build/doctrees docs docs/_build/html

# Format, lint, layers, types, dependencies, spelling.
lint: $(INSTALLED) $(TYPES)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(TYPES)/bin/mypy --python-executable $(BIN)/python
	$(BIN)/deptry .
	$(BIN)/codespell README.md docs changelog.d benchmarks datasource_governance datasource_governance_tests

fmt: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What CI runs.
check: lint test

# Measure what docs/performance.md shows; takes an hour or two.
benchmarks: $(INSTALLED)
	$(BIN)/python -m benchmarks all --out benchmarks.json

# Pin every dependency anew; no address of a registry is written.
constraints: $(INSTALLED)
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --python-version 3.11 --upgrade \
		--all-extras pyproject.toml --output-file constraints.txt
	echo mypy | $(BIN)/uv pip compile --quiet --no-header --no-annotate --python-version 3.11 \
		--upgrade - --output-file constraints-types.txt

changelog: $(INSTALLED)
	$(BIN)/towncrier build --draft --version next

# Take the pictures of docs/images anew from a running system.
screenshots: $(INSTALLED)
	$(BIN)/python -m datasource_governance_tests.browser.screenshots docs/images

clean:
	rm -rf $(VENV) $(TYPES) docs/_build

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt uv
	$(UV) -e $(EXTRAS) || $(BIN)/pip install --quiet -c constraints.txt -e $(EXTRAS)
	touch $@

# mypy looks at the packages of the other environment; it needs releases that those do not take.
$(TYPES)/.installed: constraints-types.txt
	$(PYTHON) -m venv $(TYPES)
	$(TYPES)/bin/pip install --quiet --disable-pip-version-check -r constraints-types.txt
	touch $@
