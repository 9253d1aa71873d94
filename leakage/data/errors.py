"""What may be wrong with a file: errors whose messages name it, what was expected and what to do."""

import struct
import zlib

# What Pillow raises on a picture that is not as it should be.
BROKEN = (OSError, EOFError, ValueError, SyntaxError, LookupError, TypeError, AttributeError, OverflowError, struct.error, zlib.error)


class PictureError(ValueError):
    """A picture that cannot be had."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used."""
