# make book   execute every chapter, build the HTML into _build/html
# make test   lint, tests, chapters under nbval, the built book
# make thorough  the tests that `make test` leaves out: they say again at length what shorter ones say
# make fresh  retrain chapters from nothing: make fresh CHAPTERS="csft"; RESUME=1 keeps what an earlier one trained
# make trained, make retold  the two halves of it; SHARD=1/2 trains one half of the stacks, say on another machine
# make gpu    on a machine with a GPU, by its own Python: tests, then every chapter; GPU="profile=paper retrain=True"
# make links  look whether every address in the book answers (needs the internet)
# make axe  look for accessibility violations on every built page, and at its layout (needs npm and Chromium)
# make pdf  print the built book into _build/cot2-book.pdf (needs Chromium)
# make address  put the repository's address of _config.yml wherever else it stands
# make results  draw from the records what the README says, and write the golden files: read the difference
# make installs  try the requirements in a clean environment: OF=floors, OF=newest or OF=environment.yml
# make release  build wheel, sdist, HTML and PDF into dist, and tag them; VERSION=0.2.0 also writes and commits that version
# make clean  remove what was built and trained afresh (not the environment, nor the store build/runs)

PYTHON ?= python3
JOBS ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
CHAPTERS ?= csft
PROFILE ?= quick
SHARD ?= 1/1
OF ?= newest
BIN := .venv/bin
PYTEST := $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
READY := .venv/.ready

# The matrices are small, and tests run side by side: more threads only wait for each other.
export OMP_NUM_THREADS ?= 1
# Dozens of processes import the same packages: bytecode is kept, also where the environment says that none is.
export PYTHONDONTWRITEBYTECODE =

.PHONY: book html chapters test thorough checks lint fresh trained retold gpu axe links pdf address results installs release clean

book: chapters html

chapters: $(READY)
	$(BIN)/cot2 chapters --workers $(JOBS)

html: $(READY)
	rm -rf _build
	$(BIN)/jupyter-book build . -W -n --keep-going
	test -f _build/html/book/intro.html

test:
	@bash -c 'SECONDS=0; $(MAKE) checks && echo "make test: $$((SECONDS / 60)) min $$((SECONDS % 60)) s"'

thorough: $(READY)
	$(BIN)/pytest tests -m thorough -n $(JOBS) --dist loadfile

checks: $(READY)
	$(MAKE) lint
	$(PYTEST) tests/fast/test_entries.py notebooks --nbval --durations 5
	$(PYTEST) tests --build --durations 15

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fresh:
	$(if $(filter 1,$(RESUME)),,rm -rf build/fresh)
	$(MAKE) trained
	$(MAKE) retold

trained: $(READY)
	for chapter in $(CHAPTERS); do \
	  COT2_STORE=$(CURDIR)/build/fresh $(BIN)/cot2 run $$chapter --profile $(PROFILE) --shard $(SHARD) --workers $(JOBS) --retrain || exit 1; \
	done

retold: $(READY)
	COT2_STORE=$(CURDIR)/build/fresh $(BIN)/cot2 chapters $(CHAPTERS) -p retrain True -p profile $(PROFILE)

gpu:  # neither network nor git nor .venv is needed
	-$(PYTHON) -m pytest tests/training/test_cuda.py -m cuda -p no:cacheprovider -o addopts=-q
	PYTHONPATH=$(CURDIR) $(PYTHON) release/gpu.py $(GPU)

links: $(READY)
	$(BIN)/jupyter-book build . --builder custom --custom-builder linkcheck

pdf: $(READY)
	$(BIN)/pip install -q -r release/release.txt
	$(BIN)/python release/pdf.py _build/cot2-book.pdf

axe: $(READY)
	npm install --silent --no-save --prefix build/axe axe-core@4.14.1
	$(BIN)/pytest tests/book/test_axe.py tests/book/test_page_layout.py -m thorough -n $(JOBS)

address: $(READY)
	$(BIN)/python book/address.py

results: chapters
	$(BIN)/python book/results.py
	$(BIN)/python tests/golden/goldens.py

installs:
	$(PYTHON) tests/repository/installs.py $(OF)

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
	$(BIN)/pip install -qq --no-compile -c constraints.txt -e ".[book,dev,fast,graphs,llm,slurm]"
	touch $@
