"""State of a warehouse: contents, freshness, rejections, and missing drives.

What has landed is read from raw itself, so it is shown even while nothing is published, the folder has moved, or a build
is broken; freshness, inventory and the last days are read from tables of the publication. Nothing here looks at drive-hours or RAID-hours.
"""

from drivetail.ask.status.collect import collect_status
from drivetail.ask.status.content import Status
from drivetail.ask.status.render import render_status

__all__ = ["Status", "collect_status", "render_status"]
