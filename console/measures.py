"""The project's measures: what models/metrics/metrics.yml defines, as SQL over the marts. Nothing else of the console counts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml

from engine.warehouse import PROJECT

FILE = PROJECT / "models" / "metrics" / "metrics.yml"
SHOWN = ("tail_hours_per_1000", "slow_drive_hour_ratio", "coverage_ratio", "replacements_per_100_drive_years", "drive_days")


@cache
def definitions() -> dict[str, Any]:
    """The file, parsed; `metrics` and `measures` by name, a measure with its `relation`."""
    stated = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    measures: dict[str, dict[str, Any]] = {}
    for model in stated["semantic_models"]:
        relation = re.sub(r"ref\('(\w+)'\)", r"marts.\1", model["model"])
        measures |= {measure["name"]: {**measure, "relation": relation} for measure in model["measures"]}
    return {"metrics": {metric["name"]: metric for metric in stated["metrics"]}, "measures": measures}


def expression(name: str) -> str:
    """A metric as SQL over columns named like its measures."""
    metric = definitions()["metrics"][name]
    given = metric["type_params"]
    if metric["type"] == "simple":
        return str(given["measure"])
    if metric["type"] == "ratio":
        return f"{expression(given['numerator'])} / nullif({expression(given['denominator'])}, 0)"
    names = "|".join(part["name"] for part in given["metrics"])
    return re.sub(rf"\b({names})\b", lambda word: expression(word[0]), given["expr"])


def measured_sql(names: tuple[str, ...] = SHOWN) -> str:
    """SQL of metrics by kind, over all the history: kind, and a column for each."""
    wanted = {word for name in names for word in re.findall(r"[a-z]\w+", expression(name))}
    by_relation: dict[str, list[dict[str, Any]]] = {}
    for name, measure in definitions()["measures"].items():
        if name in wanted:
            by_relation.setdefault(measure["relation"], []).append(measure)
    parts = []
    for relation, measures in by_relation.items():
        sums = ", ".join(f"{measure['agg']}({measure.get('expr', measure['name'])}) as {measure['name']}" for measure in measures)
        parts.append(f"(select kind, {sums} from {relation} where kind <> 'all' group by kind)")
    joined = " full join ".join(f"{part} {'using (kind)' if number else ''}" for number, part in enumerate(parts))
    return f"select kind, {', '.join(f'{expression(name)} as {name}' for name in names)}\nfrom {joined}\norder by kind"
