"""Errors about files; their messages name the file, what was expected and what to do."""

import struct
import zlib

BROKEN = (OSError, EOFError, ValueError, SyntaxError, LookupError, TypeError, AttributeError, OverflowError, struct.error, zlib.error)
"""The errors that Pillow raises for a damaged picture."""


class PictureError(ValueError):
    """A picture or a data set that is missing, damaged or not allowed."""


class CheckpointError(ValueError):
    """Trained weights that are missing, damaged or of the wrong kind."""


class UpdateFileError(ValueError):
    """A file of a recorded update that is missing, damaged or not allowed."""
