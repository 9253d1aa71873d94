"""An Experiment as plain data, as pages, files and links contain it: reading, checks, limits. No torch."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

from pydantic import Field

from leakage.data.checkpoints import CheckpointError, find
from leakage.networks.k_curve import Loss
from leakage.spec.aliases import also_as_before
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.json_reading import VERSION as VERSION
from leakage.spec.json_reading import parse_as as parse_as
from leakage.spec.part import Base as Base
from leakage.spec.part import Part as Part
from leakage.spec.part import SpecError as SpecError
from leakage.spec.refusals import (
    MAX_CLASSES,
    LocalSteps,
    accomplice_refusals,
    changed_model_refusals,
    classes_of,
    head_refusals,
    label_refusals,
    refusals,
    server_refusals,
)
from leakage.spec.server_fit import Clients, client_refusals, last_layer_refusals
from leakage.spec.syntax import SYNTAXES

MAX_BATCH = 128
MAX_ROUNDS = 20
MAX_CHECKS = 8
Side: TypeAlias = Literal[28, 32, 64, 224, 256]  # the side of a picture, in pixels
Channels: TypeAlias = Literal[1, 3]
SIZES: tuple[Side, ...] = get_args(Side)
MAX_PIXELS = MAX_BATCH * 64 * 64  # of all pictures of an experiment together
MAX_SEED = 2**31 - 1
MAX_SECONDS = 3600  # wall-clock time of one run


class Picture(Base):
    """One picture."""

    source: Literal["gallery", "upload", "mnist", "cifar10", "cifar100", "faces", "lfw"] = "gallery"
    id: str = Field(max_length=80)
    """The id of the picture in its source."""
    label: int | None = Field(default=None, ge=0, le=MAX_CLASSES - 1)
    """The class of the picture; None: the class that the picture has in its source."""


class Assumptions(Base):
    """What the attacker is granted beyond the update, the weights, the batch size and the shape of a picture."""

    labels: bool = False
    """Whether the attacker is granted the labels. Otherwise it reads them from the update, or optimizes them with the pictures."""
    adaptive: bool = Field(default=True, validation_alias=also_as_before("adaptive"))
    """Whether the attacker knows protocol and protection and imitates them (adaptive). Otherwise it replays plain FedSGD (naive)."""
    strategy: str = Field(default="", max_length=60, validation_alias=also_as_before("strategy"))
    """The name of the adaptive attacker's strategy against a protection; empty: the protection's first strategy."""
    statistics: Literal["none", "running", "exact"] = "none"
    """The BatchNorm statistics that are granted: none, those that the model stores, or exactly those of the private batch."""
    accomplice: Picture | None = Field(default=None, exclude_if=lambda picture: picture is None)
    """The picture of another client, which works with the attacker: the attacker knows its gradient. None: no such client."""
    examples: bool = Field(default=False, exclude_if=lambda granted: not granted)
    """Whether the attacker has other pictures of every class, from which an attack may start."""


class Experiment(Base):
    """All settings of one attack: the private pictures, model, client, protections, attack, attacker's knowledge and random seed."""

    version: Literal[1] = VERSION
    pictures: tuple[Picture, ...] = Field(default=(Picture(id="astronaut"),), min_length=1, max_length=MAX_BATCH)
    size: Side = 32
    channels: Channels = 3
    model: Part = Part(id="lenet")
    checkpoint: str = Field(default="", max_length=100)
    """The trained weights, as "id@rounds"; empty: untrained weights, drawn by the seed."""
    task: Literal["classes", "two", "flipped"] = "classes"
    """One output per class (classes), or one output in all for two classes: the label of a picture is then what the network predicts for
    it (two), or the opposite (flipped), as R-GAP's authors ran it."""
    outputs: int = Field(default=0, ge=0, exclude_if=lambda given: given == 0)
    """The number of outputs of a network with one output per class; 0: as many as the pictures have classes."""
    loss: Loss = Field(default="cross-entropy", exclude_if=lambda given: given == "cross-entropy")
    """The loss of a network with one output, known to the attacker; cross-entropy is then the logistic loss."""
    precision: Literal["float32", "float64"] = "float32"
    """The precision of the client's arithmetic and of its update."""
    batch_norm: Literal["eval", "batch"] = "eval"
    """The statistics that BatchNorm uses: its stored statistics (eval), or those of the batch, as in training (batch)."""
    protocol: Part = Part(id="fedsgd")
    aggregation: Part | None = None
    """The protocol that adds up the updates of several clients, so that the server sees only the sum; None: a single client."""
    rounds: int = Field(default=1, ge=1, le=MAX_ROUNDS)
    """The number of rounds in which the server watches the client. The client has the same pictures in every round."""
    attacked_round: int = Field(default=1, ge=1, le=MAX_ROUNDS)
    """The watched round that is attacked."""
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    server: Part | None = Field(default=None, exclude_if=lambda server: server is None)
    """The server that changes the model which it hands out; None: an honest server, which follows the protocol."""
    checks: tuple[Part, ...] = Field(default=(), max_length=MAX_CHECKS, exclude_if=lambda checks: not checks)
    """What each client checks of the model that it received, before it trains."""
    refuse: bool = Field(default=True, exclude_if=lambda refuse: refuse)
    """Whether a client sends nothing if one of its checks trips; otherwise the checks are only shown beside the run."""
    attack: Part = Part(id="idlg")
    assume: Assumptions = Assumptions()
    seed: int = Field(default=1, ge=0, le=MAX_SEED)
    max_seconds: int = Field(default=900, ge=1, le=MAX_SECONDS)

    def same_model_and_attack(self, other: "Experiment") -> bool:
        """Return whether the experiments are equal apart from the pictures, the protection and the attacker's knowledge of it."""

        def rest(experiment: Experiment) -> tuple[int, int, Experiment]:
            assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ""})
            left = experiment.model_copy(update={"pictures": (), "defenses": (), "assume": assume})
            return len(experiment.pictures), experiment.num_classes, left

        return rest(self) == rest(other)

    @property
    def num_classes(self) -> int:
        """The number of classes of the model: `outputs`, or if that is 0 the classes of the pictures; 2 if the model has one output."""
        return 2 if self.task != "classes" else self.outputs or self.picture_classes

    @property
    def picture_classes(self) -> int:
        """The number of classes of the pictures: that of the source with the most classes."""
        return max(classes_of(picture.source) for picture in self.pictures)

    @property
    def has_uploads(self) -> bool:
        return any(picture.source == "upload" for picture in self.pictures)

    def parts(self) -> list[tuple[str, Part]]:
        """Return every plug-in of the experiment with its kind."""
        return [
            ("model", self.model),
            ("protocol", self.protocol),
            *([("protocol", self.aggregation)] if self.aggregation else []),
            *(("defense", part) for part in self.defenses),
            *([("server", self.server)] if self.server else []),
            *(("check", part) for part in self.checks),
            ("attack", self.attack),
        ]

    def resolve(self, catalog: Catalog) -> "Experiment":
        """Return the experiment with the defaults of all plug-ins filled in; raise SpecError if it cannot run."""
        try:
            labels = [picture.label or 0 for picture in self.pictures]
            for words in head_refusals(self.task, self.outputs, self.loss, labels, classes=self.picture_classes):
                raise SpecError(words)
            for picture in self.pictures:
                if picture.source == "upload" and picture.label is None:
                    raise SpecError("pictures.label: an upload needs a class, given was none.")
            most = MAX_PIXELS // self.size**2
            if len(self.pictures) > most:
                raise SpecError(
                    f"pictures: of {self.size} x {self.size} pixels allowed are at most {most}, given were {len(self.pictures)}."
                )
            model = with_defaults(catalog, "model", self.model)
            outputs = self.num_classes if self.task == "classes" else 1
            check_size(catalog, model, (self.channels, self.size, self.size), outputs)
            check_needs(catalog, model, self.defenses)
            self._check_setting(catalog)
            self._check_engine(model, catalog)
            if self.checkpoint:
                self._check_fit(model, catalog)
            return self.model_copy(
                update={
                    "model": model,
                    "protocol": with_defaults(catalog, "protocol", self.protocol),
                    "aggregation": with_defaults(catalog, "protocol", self.aggregation) if self.aggregation else None,
                    "defenses": tuple(with_defaults(catalog, "defense", part) for part in self.defenses),
                    "server": self._resolve_server(model, catalog),
                    "checks": tuple(with_defaults(catalog, "check", part) for part in self.checks),
                    "refuse": self.refuse or not self.checks,  # without checks both mean the same
                    "attack": with_defaults(catalog, "attack", self.attack),
                }
            )
        except (CatalogError, CheckpointError) as error:
            raise SpecError(str(error)) from None

    def _check_setting(self, catalog: Catalog) -> None:
        """Raise SpecError unless strategy, accomplice, attacked round, protocol, aggregation and number of pictures fit together."""
        strategies = {name for part in self.defenses for name in catalog.defenses.get(part.id).strategies}
        if self.assume.strategy and self.assume.strategy not in strategies:
            allowed = ", ".join(sorted(strategies)) or "none, without a protection"
            raise SpecError(f"assume.strategy: allowed is {allowed}; given was {self.assume.strategy!r}.")
        if given := self.assume.accomplice:
            classes = self.num_classes if self.task == "classes" else 0
            shared = (given.source, given.id) in {(picture.source, picture.id) for picture in self.pictures}
            for words in accomplice_refusals(given.source, given.label, shared=shared, classes=classes):
                raise SpecError(words)
        if self.attacked_round > self.rounds:
            raise SpecError(
                f"attacked_round: allowed is 1 to {self.rounds}, the rounds that were watched; given was {self.attacked_round}."
            )
        if catalog.protocols.get(self.protocol.id).is_aggregation:
            raise SpecError(f"protocol: {self.protocol.id} is laid over another protocol. Name it under aggregation.")
        if self.aggregation:
            entry = catalog.protocols.get(self.aggregation.id)
            if not entry.is_aggregation:
                raise SpecError(f"aggregation: {self.aggregation.id} is no aggregation. Name it under protocol.")
            entry.resolve(self.aggregation.fields)  # or says which of its fields is wrong
            clients = clients_of(self.aggregation, catalog)
            if len(self.pictures) % clients:
                raise SpecError(
                    f"pictures: {len(self.pictures)} cannot be shared evenly by {clients} phones. Choose a multiple of {clients}."
                )

    def _check_engine(self, model: Part, catalog: Catalog) -> None:
        """Raise SpecError if the engine would refuse this experiment with its (resolved) model."""
        attack, each = catalog.attacks.get(self.attack.id), len(self.pictures) // clients_of(self.aggregation, catalog)
        mini_batch = int(catalog.protocols.get(self.protocol.id).resolve(self.protocol.fields).get("mini_batch", 0))
        check_steps(catalog, model, self.defenses, LocalSteps.of(each, mini_batch, self.size), batch_statistics=self.batch_norm == "batch")
        for words in label_refusals(catalog.models.get(model.id), attack, labels=self.assume.labels):
            raise SpecError(words)

    def _resolve_server(self, model: Part, catalog: Catalog) -> Part | None:
        """Return the server with the defaults of its fields; raise SpecError if the setting or the (resolved) model does not suit it."""
        if self.server is None:
            return None
        entry, server = catalog.servers.get(self.server.id), with_defaults(catalog, "server", self.server)
        shape = (self.channels, self.size, self.size)
        members, protocol = clients_of(self.aggregation, catalog), catalog.protocols.get(self.protocol.id).resolve(self.protocol.fields)
        clients = Clients.of(members, len(self.pictures), protocol, batch_statistics=self.batch_norm == "batch")
        outputs = self.num_classes if self.task == "classes" else 1
        for words in (
            *server_refusals(entry, server.fields, rounds=self.rounds, shape=shape, clients=members),
            *changed_model_refusals(entry, catalog.models.get(model.id), model.fields, channels=self.channels),
            *last_layer_refusals(entry, server.fields, catalog.models.get(model.id), model.fields, outputs=outputs),
            *client_refusals(entry, server.fields, model.fields, clients),
        ):
            raise SpecError(words)
        return server

    def _check_fit(self, model: Part, catalog: Catalog) -> None:
        """Raise SpecError unless the checkpoint was trained with this model, its fields, and pictures of this shape."""
        if self.task != "classes":
            raise SpecError("task: with trained weights only classes, one output for each. Choose classes, or an untrained model.")
        card, _ = find(self.checkpoint)
        fields = catalog.models.get(card.model).resolve(card.fields)
        wanted = {"model": card.model, **fields, "channels": card.image_shape[0], "size": card.image_shape[1], "classes": card.num_classes}
        given = {"model": model.id, **model.fields, "channels": self.channels, "size": self.size, "classes": self.num_classes}
        for name, value in wanted.items():
            if given.get(name) != value:
                remedy = f"Set {name} to {value}, or choose an untrained model"
                raise SpecError(f"checkpoint: {card.id} was trained with {name} {value}, given was {given.get(name)}. {remedy}.")


def with_defaults(catalog: Catalog, kind: str, part: Part) -> Part:
    """Return the plug-in with the defaults of its fields filled in; raise CatalogError if a field is not allowed."""
    return Part(id=part.id, fields=catalog.of(kind).get(part.id).resolve(part.fields))


def clients_of(aggregation: Part | None, known: Catalog) -> int:
    """Return how many clients an aggregation adds up, from its field `clients` or the field's default; 1 without a (known) aggregation."""
    entry = known.protocols.find(aggregation.id) if aggregation else None
    default = next((field.default for field in entry.fields if field.name == "clients"), 1) if entry else 1
    return int(aggregation.fields.get("clients", default)) if aggregation else 1


def check_size(catalog: Catalog, model: Part, image_shape: tuple[int, int, int], outputs: int) -> None:
    """Raise SpecError if the (resolved) model does not fit pictures of this shape (channels, height, width) and this number of outputs."""
    entry, size = catalog.models.get(model.id), image_shape[1]
    if size < entry.smallest:
        raise SpecError(f"size: {entry.short} needs pictures of at least {entry.smallest} pixels, given was {size}.")
    for field in entry.fields:
        if field.syntax:
            try:
                SYNTAXES[field.syntax].check_fit(str(model.fields[field.name]), image_shape, outputs)
            except ValueError as error:
                raise SpecError(f"model {model.id}.{field.name}: {error}") from None


def check_needs(catalog: Catalog, model: Part, defenses: Iterable[Part]) -> None:
    """Raise SpecError if a protection needs a field of the model that the (resolved) model does not have."""
    for entry in (catalog.defenses.get(part.id) for part in defenses):
        for name, value in entry.needs.items():
            if model.fields.get(name) != value:
                fit = [other.short for other in catalog.models for field in other.fields if field.name == name and value in field.options]
                title, given = entry.short, catalog.models.get(model.id).short
                raise SpecError(
                    f"{title} needs a model whose {name} is {value}; {given} has {model.fields.get(name, 'none')}. "
                    f"Choose another protection, or with {name} {value} one of {', '.join(fit)}."
                )


def check_steps(catalog: Catalog, model: Part, defenses: Iterable[Part], steps: LocalSteps, *, batch_statistics: bool) -> None:
    """Raise SpecError if the engine would refuse to combine the (resolved) model, the protections and the local steps; see `refusals`."""
    acting = [catalog.defenses.get(part.id) for part in defenses]
    for words in refusals(catalog.models.get(model.id), model.fields, acting, steps, batch_statistics=batch_statistics):
        raise SpecError(words)


def parse(text: str | bytes | dict[str, Any]) -> Experiment:
    """Return an Experiment from JSON; raise SpecError with the first wrong field, what is allowed and what was given."""
    return parse_as(text, Experiment, "an experiment")
