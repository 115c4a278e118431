"""An independent reference of the public contract: plain loops, standard library, pyarrow's file readers and scipy's distributions only."""

from .reference import RELATIONS

COVERED = frozenset({*RELATIONS, "drive_actions"})
"""Every mart of the fleet that is computed a second time; the comparisons are test_marts_equal_reference.py and test_actions.py."""
