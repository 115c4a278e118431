"""Tools that measure, prove and fit the product; not part of the installed package."""
