"""The service that runs by itself, and its settings."""

import drivetail.path  # noqa: F401  before what it finds


class SettingsError(ValueError):
    """drivetail.toml cannot be used; the message names the file, the key and its value, and says what is allowed."""
