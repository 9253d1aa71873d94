"""The kind of device in the version of a run: results of CPU, CUDA and MPS differ, so only results of one kind are shared."""

CPU = "cpu"
ON = " on "


def on_device(version: str, kind: str) -> str:
    """Return a run's version (a text that names its code and weights) for a kind of device: " on KIND" ends it, except for the CPU.

    >>> on_device("5f03 untrained", "cuda"), on_device("5f03 untrained on mps", "cpu")
    ('5f03 untrained on cuda', '5f03 untrained')
    """
    program = version.partition(ON)[0]
    return program if kind == CPU else f"{program}{ON}{kind}"
