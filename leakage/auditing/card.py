"""The card of an audit: the model, what its client does, and what the computation depended on."""

import hashlib
import importlib.metadata
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from leakage.api.outcome import loss_words
from leakage.auditing.audit_arguments import AuditArguments
from leakage.auditing.scenes import PreparedClient
from leakage.engine.federation import ThreatModel
from leakage.engine.loading import PACKAGE
from leakage.engine.plugin import Plugin, described
from leakage.spec.words import BATCH_NORM, counted, format_value

FOLLOWS = "it follows the protocol, and tries to learn what it can from the updates"
CHEATS = "it changes the model before it hands the model out"
PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-image")  # on which the digits of a result depend


@dataclass(frozen=True)
class AuditCard:
    """What was audited, and on what the digits of the findings depend."""

    model: str
    """The name of the model's class."""
    parameters: int
    """The number of its parameters."""
    sent: int
    """The number of parameters that the client trains, and sends."""
    weights: str
    """The SHA-256 of the model's parameters and buffers, by name, in hexadecimal."""
    image_shape: tuple[int, int, int]
    """(C, H, W) of a picture."""
    num_classes: int
    """The number of classes, K."""
    loss: str
    """What the client minimizes."""
    batch_norm: str
    """The statistics that BatchNorm uses: eval or batch."""
    plugins: dict[str, list[dict[str, Any]]]
    """For protocol, defenses, aggregation, server and checks each plug-in with its id and its fields."""
    clients: int
    """How many clients' updates the server sees as one sum."""
    client: str
    """What the client does and what the server sees, in a sentence or more."""
    labels: bool
    """Whether the attackers are granted the labels."""
    statistics: str
    """The statistics of BatchNorm that the attackers are granted: none, running or exact."""
    helpers: str
    """What else the attackers are granted: pictures of another client, or a network that generates pictures."""
    seed: int
    """The seed of all random numbers."""
    threads: int
    """The number of threads of torch."""
    versions: dict[str, str]
    """The versions of this program and of the packages on which the digits depend."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The card as pairs of a topic and a description."""
        channels, height, width = self.image_shape
        sent = "all" if self.sent == self.parameters else f"{self.sent:,}"
        return [
            ("Model", f"{self.model}, {self.parameters:,} parameters, of which the client sends {sent}"),
            ("Pictures", f"{height} by {width} pixels, {counted(channels, 'channel')}, {self.num_classes} classes"),
            ("Training", f"{self.loss}; BatchNorm {BATCH_NORM[self.batch_norm].sentence}"),
            ("Client", self.client),
            ("Server", CHEATS if self.plugins["server"] else FOLLOWS),
            ("Weights (SHA-256)", self.weights),
            ("Seed, threads", f"{self.seed}, {self.threads}"),
            ("Versions", ", ".join(f"{package} {version}" for package, version in self.versions.items())),
        ]


def card_of(arguments: AuditArguments, client: PreparedClient) -> AuditCard:
    """Return the card of an audit, of which `client` is one of the clients."""
    federation, model = arguments.federation, arguments.model
    defenses = [protection.defense for protection in federation.protections]
    plugins: dict[str, list[Plugin]] = {
        "protocol": [federation.protocol],
        "defenses": [*defenses],
        "aggregation": [federation.aggregation] if federation.aggregation.members > 1 else [],
        "server": [federation.server] if federation.server else [],
        "checks": [*federation.checks],
    }
    return AuditCard(
        model=type(model).__name__,
        parameters=sum(value.numel() for value in model.parameters()),
        sent=sum(value.numel() for value in client.model.parameters()),
        weights=hash_of(model),
        image_shape=(client.x.shape[1], client.x.shape[2], client.x.shape[3]),
        num_classes=client.num_classes,
        loss=loss_words(client.model),
        batch_norm=arguments.simulated_batch_norm,
        plugins={kind: list(map(as_json, chosen)) for kind, chosen in plugins.items()},
        clients=federation.aggregation.members,
        client=client_sentence(plugins, federation.aggregation.members),
        labels=federation.threat.labels,
        statistics=federation.threat.statistics,
        helpers=_helpers(federation.threat),
        seed=arguments.seed,
        threads=torch.get_num_threads(),
        versions={"gradient-leakage-explorer": _own_version()} | {name: importlib.metadata.version(name) for name in PACKAGES},
    )


def client_sentence(plugins: dict[str, list[Plugin]], clients: int) -> str:
    """Describe what the client of an audit does, and what the server sees."""
    protected = f", protected by {_named(plugins['defenses'])}" if plugins["defenses"] else ", without protection"
    checked = f" The client checks the model that it receives: {_named(plugins['checks'])}." if plugins["checks"] else ""
    summed = f" The server sees the sum of {counted(clients, 'client')}." if clients > 1 else ""
    server = f" The server changes the model: {_named(plugins['server'])}." if plugins["server"] else ""
    protocol = ", ".join(plugin.short or plugin.title for plugin in plugins["protocol"])
    return f"The client sends its update by {protocol}{protected}.{checked}{summed}{server}"


def _own_version() -> str:
    """Return the version of this program, which the package states in its first file."""
    match = re.search(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    return match[1] if match else "unknown"


def _helpers(threat: ThreatModel) -> str:
    accomplice = ["pictures of another client, which works with the attacker"] if threat.accomplice else []
    return "; ".join(accomplice + ([threat.generator.knowledge] if threat.generator else [])) or "none"


def as_json(plugin: Plugin) -> dict[str, Any]:
    """Return a plug-in as its id and its fields, which are numbers, words and switches."""
    return {"id": plugin.id, **{declared.name: getattr(plugin, declared.name) for declared in described(type(plugin))}}


def hash_of(model: nn.Module) -> str:
    """Return the SHA-256 of a model's parameters and buffers, in hexadecimal."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, torch.Tensor):  # a module may keep other things in its state
            digest.update(name.encode() + b"\0" + str((value.dtype, tuple(value.shape))).encode() + b"\0")
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def with_fields(plugin: Plugin) -> str:
    """Return the name of a plug-in with its fields, as "Gaussian noise (scale 0.001)"."""
    fields = {name: value for name, value in as_json(plugin).items() if name != "id"}
    values = ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items())
    return (plugin.short or plugin.title) + (f" ({values})" if values else "")


def _named(plugins: Iterable[Plugin]) -> str:
    return ", ".join(map(with_fields, plugins))
