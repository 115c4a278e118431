"""What runs by itself, and the settings that it goes by."""


class SettingsError(ValueError):
    """drivetail.toml cannot be used; the message names the file, the key and its value, and says what is allowed."""
