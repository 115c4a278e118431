"""The study: this fleet beside The Tail at Store (Hao et al., FAST'16), number by number and curve by curve.

    models/        counts/ by day, steps/, marts/ (what is published), health/; _sources.yml names the relations of the fleet that they read
    seeds/         the paper's numbers and curves, and which measure of ours answers which
    words.py       findings, verdicts and numbers as the paper writes them
    table.py, pages/, cli.py  `drivetail study`: the table, the page, the command
    analyses/      the query of each finding, to run and change
    calibration.py `make calibration`: has the simulator the paper's numbers?
    plugin.py      what drivetail knows of all this
    tests/         with the study a second time, in plain Python (reference.py)

A build makes its models after the fleet's, in the same database: those of `made: each_day` as it makes the fleet's, the others when
`drivetail study` asks. Nothing outside this folder imports it, and no model of the fleet reads one of its relations.
"""
