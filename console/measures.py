"""The project's measures: what models/metrics/metrics.yml defines, as SQL over the marts. Nothing else of the console counts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml

from engine.warehouse import PROJECT

SHOWN = ("tail_hours_per_1000", "slow_drive_hour_ratio", "coverage_ratio", "replacements_per_100_drive_years", "drive_days")


@cache
def definitions() -> dict[str, Any]:
    """The file, parsed; its metrics by name."""
    stated: dict[str, Any] = yaml.safe_load((PROJECT / "models" / "metrics" / "metrics.yml").read_text(encoding="utf-8"))
    return {**stated, "metrics": {metric["name"]: metric for metric in stated["metrics"]}}


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


def measured_sql() -> str:
    """SQL of the metrics that are shown, by kind, over all the history: kind, and a column for each."""
    parts = []
    for model in definitions()["semantic_models"]:
        sums = ", ".join(f"{measure['agg']}({measure.get('expr', measure['name'])}) as {measure['name']}" for measure in model["measures"])
        relation = re.sub(r"ref\('(\w+)'\)", r"marts.\1", model["model"])
        parts.append(f"(select kind, {sums} from {relation} where kind <> 'all' group by kind)")
    first, *others = parts
    shown = ", ".join(f"{expression(name)} as {name}" for name in SHOWN)
    return f"select kind, {shown}\nfrom {first}{''.join(f' full join {part} using (kind)' for part in others)}\norder by kind"
