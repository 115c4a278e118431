"""The command `drivetail`. Importing this package alone puts no other name on the path (drivetail/path.py)."""
