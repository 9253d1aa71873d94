"""Results of the CPU, of CUDA and of MPS differ in their last digits, and search after search in all: only those of one kind are shared."""

CPU = "cpu"
ON = " on "


def on_device(version: str, kind: str) -> str:
    """Return the version of a run that is computed on such a device; the CPU adds nothing to it.

    >>> on_device("5f03 untrained", "cuda"), on_device("5f03 untrained on mps", "cpu")
    ('5f03 untrained on cuda', '5f03 untrained')
    """
    program = version.partition(ON)[0]
    return program if kind == CPU else f"{program}{ON}{kind}"
