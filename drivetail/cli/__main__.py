"""`python -m drivetail.cli`: the command `drivetail`."""

import sys

from drivetail.cli import main

sys.exit(main(prog_name="drivetail"))
