"""Fleets that the commands and pages of the fleet are tested with, too."""

from tests.drivetail.conftest import copied, published, settled  # noqa: F401
from tests.report.conftest import eventful, uneventful  # noqa: F401
