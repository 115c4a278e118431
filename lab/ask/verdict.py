"""The answer of two sets of runs in a sentence: yes, no or cannot say, with its interval. lab/macros/verdict.sql judges."""

from __future__ import annotations

from engine.read import Row

MARGIN_PERCENT = 10
"""Within which two sides count as equal: lab_equal_percent of the models."""
MUCH_PERCENT = 1000
"""From here on a difference is said as a factor."""
FEW_RUNS = 5
"""Runs of a phase below which the page of before and after asks for more."""
SLOWER = ("slower", "faster")
FRAGMENTED = ("more fragmented", "less fragmented")


def said(row: Row, a: str, b: str, words: tuple[str, str] = SLOWER) -> str:
    """The answer of a row of fct_bench_comparisons: is a worse than b? words: what worse and better are called."""
    worse, better = words
    bounds = ends(row)
    n = f", n = {row['n_a']} and {row['n_b']}"
    if row["differing_options"] is not None:
        return f"Not the same benchmark: {row['differing_options']}; not compared"
    match row["answer"]:
        case "limited":
            return "The limit was measured: both sides reach it"
        case "slower" | "faster":
            by = "" if row["loss_percent"] is None else f" by {abs(row['loss_percent']):.1f}%{bounds}"
            if by and abs(row["loss_percent"]) >= MUCH_PERCENT and row.get("ratio_low") is not None:
                by = f", {row['ratio']:.3g} times (95%: {row['ratio_low']:.3g} to {row['ratio_high']:.3g})"
            return f"Yes: {a} is {worse if row['answer'] == 'slower' else better} than {b}{by}{n}"
        case "equal":
            return (
                f"No: {a} is not {worse} than {b} by more than {max(row['most_loss_percent'], 0):.1f}%, "
                f"nor {better} by more than {max(row['most_gain_percent'], 0):.1f}%{n}"
            )
        case "not slower":
            return f"No: {a} is not {worse} than {b} by more than {max(row['most_loss_percent'], 0):.1f}%{n}"
        case "cannot say":
            more = None if row["runs_to_show"] is None else row["runs_to_show"] - min(row["n_a"], row["n_b"])
            needed = f"; {more:,} more runs of each would show {MARGIN_PERCENT}%" if more is not None and more > 0 else ""
            if not bounds:
                return f"Cannot say: {row['n_a']} and {row['n_b']} runs are too few{needed}"
            return f"Cannot say: {a} is {worse} than {b} by {row['loss_percent']:.1f}%{bounds}{n}{needed}"
        case "no data":
            return f"Cannot say: {row['n_a']} and {row['n_b']} runs; two of each are the least"
        case _:
            return "Cannot say: files of other sizes are not the same test"


def ends(row: Row) -> str:
    """The interval of a difference, the smaller end first; nothing where there is none."""
    if row["loss_percent_low"] is None:
        return ""
    low, high = row["loss_percent_low"], row["loss_percent_high"]
    low, high = (-high, -low) if row["answer"] == "faster" else (low, high)
    return f" (95%: {low:.1f} to {high:.1f}%)"
