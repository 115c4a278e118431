"""The lab: experiments on drives, filesystems and settings, and ToleRAID. What they say is defined in lab/models/.

    contract.py    what a bundle may say; the columns of the raw tables; LabError (the call fails) and Refused (one file is left out)
    tools/         one module for each tool whose output is read
    bundle.py      a folder or archive -> experiment.toml and the rows of runs.csv, checked
    landing.py     a bundle -> `WAREHOUSE/raw/lab/experiment_id=ID/NNNNNN/`, whole or not at all
    statistics.py  functions of SciPy that the models call in SQL, such as student_two_sided_p(t, freedom)
    build.py       runs the models over the experiments that have changed, in a database of their own
    generations.py keeps each relation as a Parquet file per experiment, which publications show
    run/, simulate/  experiments on this machine, and with known truth
    toleraid/      the simulation, with NumPy alone; runs_store.py keeps its runs
    ask/, pages/, cli/  what the commands answer, draw and are
    plugin.py      what drivetail knows of all this

Nothing outside this folder imports it, and no model of the fleet reads one of its relations. `drivetail build` runs none of its models.

To add a tool
1. `lab/tools/NAME.py` (`-` of the tool is `_` of the module) with
     EXPECTED  what the tool prints, for the message of a file that is something else
     TABLES    table -> columns (contract.Columns) that it fills; several tools may fill one table: import it from the first
     read(path, reading)  yields (table, rows): a Polars frame with those columns, in order, in batches where files are large
   It raises Refused(UNREADABLE | NO_RESULT | NO_CLOCK, message) for a file it cannot use, and calls `reading.reject(line)` for a line
   that does not parse. `reading.listing` is the row of runs.csv. tools/text.py reads text, packed or not. tools/bench.py is the shortest.
2. Its line in TOOLS of `lab/tools/__init__.py`.
3. Tables that are new: their names in `lab/models/_sources.yml`. A source has the columns of TABLES, behind experiment_id, delivery_seq
   and listing.
4. A test on real output in lab/tests/, and a good file in lab/tests/test_any_output.py, which mutates it.

To add a model
1. `lab/models/SUBJECT/NAME.sql` and `.yml`, as everywhere: grain in the first comment, contract, unique_grain, a unit test. A model
   is a table of schema `lab` (lab/dbt_project.yml); one of `lab/models/SUBJECT/steps/` is of schema `lab_steps`, unpublished.
   A model that is not published takes the name `step_...`. What SQL cannot (p values, quantiles of t) is a function of
   lab/statistics.py that SQL calls, or a Python model in steps/.
2. Rows of a tool come from `source('lab', TABLE)`; join `ref('step_lab__listings')` by experiment_id, delivery_seq, listing: it holds the
   rows of runs.csv that stand, with the run key, and drops what a later revision replaced.
   Benchmark values come from `ref('fct_bench_results')`, where superseded results are gone already.
3. Every published model has `experiment_id` and keeps experiments apart: a build computes only those that have changed.
"""
