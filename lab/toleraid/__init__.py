"""ToleRAID: what reading around slow drives would gain, request by request (The Tail at Store, section 5).

`distributions` draws how slow each drive is, `requests` when requests arrive, `policies` serves them, `run` does all three. It knows no
warehouse: what it draws from is given to it, and what it finds is returned.
"""

from lab.toleraid.distributions import Distribution, Drawn, Periodic, Rare, Vectors, independent, joint, placed
from lab.toleraid.files import ToleranceError, read_block_trace, read_completions, read_quantiles, read_slowdowns
from lab.toleraid.jitter import PAPER_JITTER, Jitter
from lab.toleraid.policies import POLICIES, Policies
from lab.toleraid.requests import Arrivals, Layout
from lab.toleraid.run import Experiment, Outcome, simulate

__all__ = [
    "PAPER_JITTER",
    "POLICIES",
    "Arrivals",
    "Distribution",
    "Drawn",
    "Experiment",
    "Jitter",
    "Layout",
    "Outcome",
    "Periodic",
    "Policies",
    "Rare",
    "ToleranceError",
    "Vectors",
    "independent",
    "joint",
    "placed",
    "read_block_trace",
    "read_completions",
    "read_quantiles",
    "read_slowdowns",
    "simulate",
]
