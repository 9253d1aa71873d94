"""The version of the package: pyproject.toml and `leakage.__version__` take it from here."""

VERSION = "0.2.0"
