"""What may be wrong with a file: errors whose messages name it, what was expected and what to do."""


class PictureError(ValueError):
    """A picture that cannot be had."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used."""
