"""An independent reference of the public contract: plain loops, standard library, pyarrow's file readers and scipy's distributions only."""

from .compare import STUDY_RELATIONS
from .reference import RELATIONS

COVERED = frozenset({*RELATIONS, *STUDY_RELATIONS, "drive_actions"})
"""Every mart that is computed a second time; the comparisons are test_marts_equal_reference.py and test_actions.py."""
