# make book      execute every chapter, build the HTML into _build/html, test its pages (some need Chromium)
# make test      lint, tests, chapters under nbval with short live trainings (some tests need node)
# make lint      ruff, its formatter and mypy
# make thorough  the long tests, and every page of the book that `make book` has built (needs npm and Chromium)
# make fresh     train a profile's runs of chapters from nothing: CHAPTERS="csft budget" PROFILE=paper; RESUME=1 goes on
# make gpu       on a machine with a GPU, by its own Python: tests, then every chapter; GPU="profile=paper retrain=True"
#                WHOLE=1 trains the authors' recipe instead and judges the ledger by it; GPU="workers=4"
# make pdf       print the built book into _build/cot2-book.pdf (needs Chromium)
# make results   write what the README says of the records, and the golden files: read the difference
# make release   build wheel, sdist, HTML and PDF into dist, and tag them; VERSION=0.2.0 also writes and commits it
# make clean     remove what was built and trained afresh (not the environment, build/runs and build/gpu)

PYTHON ?= python3
JOBS ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
CHAPTERS ?= csft
PROFILE ?= quick
BIN := .venv/bin
PYTEST := $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
READY := .venv/.ready

# The matrices are small, and tests run side by side: more threads only wait for each other.
export OMP_NUM_THREADS ?= 1
# Dozens of processes import the same packages: bytecode is kept, also where the environment says that none is.
export PYTHONDONTWRITEBYTECODE =

.PHONY: book chapters html pages test lint thorough fresh gpu pdf results release clean

book: chapters html pages

chapters: $(READY)
	$(BIN)/cot2 chapters --workers $(JOBS)

html: $(READY)
	rm -rf _build
	$(BIN)/jupyter-book build . -W -n --keep-going
	test -f _build/html/book/intro.html

pages: $(READY)
	$(PYTEST) tests -m "pages and not thorough" -rs --durations 5

test: lint
	$(PYTEST) tests notebooks --nbval-lax -rs --durations 15

thorough: $(READY)
	-npm install --silent --no-save --prefix build/axe axe-core@4.14.1
	$(BIN)/pytest tests -m thorough -n $(JOBS) --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fresh: export COT2_STORE = $(CURDIR)/build/fresh
fresh: $(READY)
	$(if $(filter 1,$(RESUME)),,rm -rf $(COT2_STORE))
	for chapter in $(CHAPTERS); do \
	  $(BIN)/cot2 run $$chapter --profile $(PROFILE) --workers $(JOBS) --retrain || exit 1; \
	done
	$(BIN)/cot2 chapters $(CHAPTERS) -p retrain True -p profile $(PROFILE)

gpu:  # neither network nor git nor .venv is needed
	-$(PYTHON) -m pytest tests/training/test_cuda.py -m cuda -p no:cacheprovider -o addopts=-q
	PYTHONPATH=$(CURDIR) $(PYTHON) release/$(if $(filter 1,$(WHOLE)),whole,gpu).py $(GPU)

pdf: $(READY)
	$(BIN)/pip install -q -r release/release.txt
	$(BIN)/python release/pdf.py _build/cot2-book.pdf

results: chapters
	$(BIN)/python book/results.py
	$(BIN)/python tests/golden/goldens.py

release: $(READY)  # commits and tags here; nothing leaves this machine
	$(PYTHON) release/version.py set $(VERSION)
	rm -rf dist
	$(MAKE) book pdf
	$(BIN)/python -m build --outdir dist .
	cp -r _build/html _build/cot2-book.pdf dist
	$(PYTHON) tests/repository/installs.py dist/*.whl
	$(PYTHON) release/version.py tag

clean:
	rm -rf _build dist build/executed build/book build/fresh .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -U pip  # older ones resolve the lock slowly
	$(BIN)/pip install -qq --no-compile -c constraints.txt -e ".[book,dev,graphs,llm,slurm]"
	touch $@
