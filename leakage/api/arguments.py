"""The arguments of `leakage.attack`, `leakage.frames` and `leakage.observe`: each is written here once, with its type and its default."""

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, wraps
from inspect import cleandoc, signature
from typing import Literal, ParamSpec, TypeVar, get_args

from torch import Tensor, nn

from leakage.api.normalization import Constants
from leakage.api.plugins import chosen
from leakage.api.progress import ReportProgress
from leakage.api.update_check import Update
from leakage.engine.core import Attack, Check, Defense, Protocol, Server
from leakage.engine.federation import Federation, ThreatModel

USUAL = "inverting_gradients"  # the attack where the caller names none, and the server is honest
Shape = tuple[int, int, int]
BatchNorm = Literal["auto", "eval", "batch"]
Loss = Callable[[Tensor, Tensor], Tensor]  # (logits (B, K), y) -> a scalar
Arguments = TypeVar("Arguments")
Returned = TypeVar("Returned")
P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientArguments:
    """The keyword arguments of a call that describe the client and what the attacker knows of it; `leakage.attack` explains each.

    Raises:
        TypeError, ValueError: when an argument has a value that is not allowed.
    """

    defenses: Sequence[str | Defense] = ()
    protocol: str | Protocol = "fedsgd"
    aggregation: str | Protocol | None = None
    server: str | Server | None = None
    checks: Sequence[str | Check] = ()
    adaptive: bool = True
    threat_model: ThreatModel | None = None
    normalization: Constants | None = None
    batch_norm: BatchNorm = "auto"
    loss: Loss | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name, given in (("defenses", self.defenses), ("checks", self.checks)):
            if isinstance(given, str):
                raise TypeError(f"{name} must be a list; got the word {given!r}. Write [{given!r}].")
        if self.batch_norm not in get_args(BatchNorm):
            raise ValueError(f"batch_norm must be auto, eval or batch; got {self.batch_norm!r}.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed must be a whole number from 0 on; got {self.seed!r}.")

    @property
    def threat(self) -> ThreatModel:
        """Everything that the attacker is granted."""
        return self.threat_model or ThreatModel(adaptive=self.adaptive)

    @property
    def simulated_batch_norm(self) -> Literal["eval", "batch"]:
        """The BatchNorm mode of a client that is simulated on pictures: `batch_norm`, with "auto" as "eval"."""
        return "batch" if self.batch_norm == "batch" else "eval"

    @cached_property
    def federation(self) -> Federation:
        """The plug-ins and the threat model as the engine takes them. Raises TypeError, ValueError."""
        protocol: Protocol = chosen("protocol", self.protocol)
        aggregation: Protocol | None = None if self.aggregation is None else chosen("protocol", self.aggregation)
        if protocol.is_aggregation:
            raise ValueError(f"{protocol.id} is laid over another protocol. Name it as aggregation.")
        if aggregation and not aggregation.is_aggregation:
            raise ValueError(f"{aggregation.id} is no aggregation. Name it as protocol.")
        defenses: list[Defense] = [chosen("defense", defense) for defense in self.defenses]
        strategies = [name for defense in defenses for name in defense.strategies()]
        threat = self.threat
        if threat.strategy and threat.strategy not in strategies:
            expected = ", ".join(strategies) or "none"
            raise ValueError(f"strategy: {threat.strategy!r} is none of these defenses; expected is one of {expected}.")
        if threat.statistics not in ("none", "running", "exact"):
            raise ValueError(f"statistics must be none, running or exact; got {threat.statistics!r}.")
        server: Server | None = None if self.server is None else chosen("server", self.server)
        if server and server.rounds > 1:
            raise ValueError(f"{server.id} needs {server.rounds} watched rounds; one round is simulated here. Run it in the lab.")
        checks = tuple(chosen("check", check) for check in self.checks)
        federation = Federation.of(protocol, defenses, threat, seed=self.seed, aggregation=aggregation)
        alone = [check.id for check in checks if check.compares == "clients" and federation.aggregation.members == 1]
        if alone:
            raise ValueError(f"{alone[0]} compares the models of several clients, and one client is alone here. Give an aggregation.")
        return replace(federation, server=server, checks=checks)


@dataclass(frozen=True, eq=False)
class ObserveArguments(ClientArguments):
    """The arguments of `leakage.observe`."""

    model: nn.Module
    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class AttackArguments(ClientArguments):
    """The arguments of `leakage.attack` and of `leakage.frames`: pictures `x` with labels `y`, or an update alone."""

    model: nn.Module
    x: Tensor | None = None
    y: Tensor | None = None
    _: KW_ONLY
    attack: str | Attack | None = None
    update: Update | None = None
    image_shape: Shape | None = None
    batch_size: int | None = None
    progress: bool | ReportProgress | None = None

    @property
    def threat(self) -> ThreatModel:
        """Everything that the attacker is granted; labels beside an update are granted too."""
        threat = super().threat
        return replace(threat, labels=True) if self.update is not None and self.y is not None else threat

    @property
    def attacker(self) -> Attack:
        """The attack; by default the attack that reads what the server has built in, or a search. Raises TypeError, ValueError."""
        server = self.federation.server
        usual = server.reading[0] if server and server.reading else USUAL
        attack: Attack = chosen("attack", usual if self.attack is None else self.attack)
        return attack


def takes(
    arguments: Callable[P, Arguments], *, explained_by: str = ""
) -> Callable[[Callable[[Arguments], Returned]], Callable[P, Returned]]:
    """Return a decorator that gives a function of one dataclass instance the dataclass's fields as its parameters.

    The decorated function makes the instance from its arguments. Callers, type checkers and `help` see the fields.

    Args:
        arguments: the dataclass.
        explained_by: a docstring with Args that explain the parameters; empty where the function's docstring explains them itself.

    Returns:
        A decorator.

    Example:
        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 2
        >>> @takes(Point)
        ... def total(point: Point) -> int:
        ...     return point.x + point.y
        >>> total(1), str(signature(total))
        (3, '(x: int, y: int = 2) -> int')
        >>> total(1, z=1)
        Traceback (most recent call last):
        TypeError: total() got an unexpected keyword argument 'z'
    """
    parameters = signature(arguments)

    def decorate(function: Callable[[Arguments], Returned]) -> Callable[P, Returned]:
        @wraps(function)
        def called(*given: P.args, **named: P.kwargs) -> Returned:
            try:
                parameters.bind(*given, **named)
            except TypeError as error:  # it names this function, and not the class
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(arguments(*given, **named))

        public = parameters.replace(return_annotation=signature(function).return_annotation)
        vars(called).update(__signature__=public)
        if explained_by:
            called.__doc__ = _explained(function.__doc__ or "", explained_by, list(public.parameters))
        return called

    return decorate


def _explained(doc: str, source: str, names: list[str]) -> str:
    """Return the docstring `doc` with the Args of the docstring `source`, for the parameters `names`, inserted before its Returns."""
    args = cleandoc(source).partition("\nArgs:\n")[2].partition("\n\n")[0] + "\n"
    texts = {match[1]: match[0] for match in re.finditer(r"^ {4}(\w+):.*\n(?: {8}.*\n)*", args, re.MULTILINE)}
    before, returns, after = cleandoc(doc).partition("\nReturns:\n")
    return f"{before}\nArgs:\n{''.join(texts[name] for name in names)}{returns}{after}"
