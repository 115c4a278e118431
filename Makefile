# The commands people type. `make demo` and `make test` set up all they need; the only requirements are Python 3.11 to 3.13, git and make.
PYTHON ?= python3
UV := .uv/bin/uv
RUN := .venv/bin
WAREHOUSE ?= ./warehouse
INBOX ?= ./inbox
PORT ?= 8080
# else every process compiles every module again
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo site pictures airflow docs check test tests lint proof bench soak mutants calibration spark-cluster spark-cluster-stop wheel sbom clean help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: .venv/.ready  ## simulate a small fleet, ingest it, build, write the weekly report
	$(RUN)/drivetail demo --out demo
	@$(RUN)/python -m workbench.dbt_database demo/warehouse target/dbt.duckdb

site: .venv/.ready  ## the same, and the console as files to look at without a server: demo/site/index.html
	$(RUN)/drivetail demo --out demo --site demo/site

pictures: .venv/.ready  ## take the pictures of README.md and docs/ again; needs Chromium
	$(RUN)/python -m workbench.pictures

airflow: .venv/.airflow  ## run the warehouse by itself: INBOX=folder with deliveries, WAREHOUSE=folder, PORT=8080 (docs/airflow.md)
	test -e $(WAREHOUSE)/drivetail.toml || $(RUN)/drivetail init --inbox $(INBOX) --warehouse $(WAREHOUSE)
	PORT=$(PORT) deploy/airflow.sh $(WAREHOUSE)

docs: .venv/.ready  ## what the tables mean, with lineage: target/docs.html
	$(RUN)/drivetail docs --out target/docs.html

check: .venv/.ready  ## what an edit may have broken, in seconds: MODEL=name for one model, ALL=1 for everything
	@$(RUN)/python -m workbench.check $(if $(MODEL),--model $(MODEL)) $(if $(ALL),--all)

test: .venv/.airflow  ## what must hold before a change lands: lint, types, models, one fleet against the reference (half an hour)
	@$(MAKE) --no-print-directory --jobs=2 lint tests

# many of them wait for servers and schedulers, so lint and types go beside them
tests: .venv/.airflow
	$(RUN)/pytest

lint: .venv/.airflow  ## style and types, Python and SQL
	@$(RUN)/python -m workbench.check --lint

proof: .venv/.spark  ## all that make test leaves out for its length, with it (three quarters of an hour); writes its row of docs/results/soak.md
	$(RUN)/python -m workbench.soak --only proof

bench: .venv/.spark  ## speed and size against their bounds, hours: ONLY=day,hour,... WORK=folder; writes docs/results/bench.md
	$(RUN)/python -m workbench.bench $(if $(ONLY),--only $(ONLY)) $(if $(WORK),--work $(WORK))

soak: .venv/.airflow  ## 20 random fleets, 50 kills, two days under a real scheduler; writes docs/results/soak.md
	$(RUN)/python -m workbench.soak

mutants: .venv/.ready  ## faults in the models' SQL that unit tests must find (about 40 minutes); writes docs/results/mutants.md
	$(RUN)/python -m workbench.mutants

calibration: .venv/.ready  ## simulated fleets against the paper's numbers and curves (half an hour); writes docs/results/calibration.md
	$(RUN)/python -m study.calibration

spark-cluster: .venv/.spark  ## a Spark master and two workers on this machine (docs/spark.md)
	$(RUN)/python -m workbench.spark_cluster

spark-cluster-stop:  ## end it
	$(RUN)/python -m workbench.spark_cluster --stop

wheel: .venv/.ready  ## a wheel that installs anywhere: dist/ (docs/install.md)
	$(UV) build --quiet --wheel --no-build-isolation --python $(RUN)/python --out-dir dist
	$(UV) export --quiet --frozen --no-emit-project --no-dev --extra console --extra gate --extra notify -o dist/requirements.txt

# in an environment without the tools of development
sbom: .venv/.ready  ## every dependency with its version and licence: dist/sbom.cdx.json (CycloneDX), dist/licences.md
	mkdir -p dist
	UV_PROJECT_ENVIRONMENT=target/sbom $(UV) sync --frozen --quiet --no-dev --all-extras --no-install-project
	$(UV) tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o dist/sbom.cdx.json target/sbom/bin/python
	$(RUN)/python -m workbench.licences dist/sbom.cdx.json dist/licences.md

clean:  ## remove what the targets above made
	rm -rf demo target logs dist .venv .uv

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv==0.13.8

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --quiet --inexact --python $$($(PYTHON) -c 'import sys; print(sys.executable)')
	touch $@

# beside what is there already: the demo does without
.venv/.airflow: .venv/.ready
	$(UV) sync --frozen --quiet --inexact --extra airflow --python $$($(PYTHON) -c 'import sys; print(sys.executable)')
	touch $@

# beside both: 450 MB for the target spark of profiles.yml, which needs Java 17 or later as well
.venv/.spark: .venv/.airflow
	$(UV) sync --frozen --quiet --inexact --extra airflow --extra spark --python $$($(PYTHON) -c 'import sys; print(sys.executable)')
	touch $@
