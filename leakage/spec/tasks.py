"""The other tasks of a worker as plain data: to train a model or an attacker's network, and to measure ranks or gradients. No torch."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from leakage.networks.grammar import Map, canonical, unroll
from leakage.networks.grammar import parse as parse_network
from leakage.networks.k_curve import Loss
from leakage.networks.rank_cost import gradient_directions, gradient_seconds, seconds, to_measure, too_large
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import (
    MAX_SECONDS,
    MAX_SEED,
    VERSION,
    Assumptions,
    Base,
    Channels,
    Experiment,
    Part,
    Picture,
    Side,
    SpecError,
    check_needs,
    check_size,
    check_steps,
    parse_as,
    with_defaults,
)
from leakage.spec.refusals import MAX_CLASSES, LocalSteps

FEWEST = 500  # pictures of a client of a training on a whole data set: 50,000 among at most 100 clients


class Training(Base):
    """A training of a model on a data set by federated averaging; with one client it is central, and a round is an epoch."""

    version: Literal[1] = VERSION
    model: Part = Part(id="lenet")
    data: Literal["digits", "mnist", "cifar10"] = "mnist"
    pictures: int = Field(default=0, ge=0, le=60_000)
    """The number of training pictures, from the first on; 0: all that this machine has."""
    rounds: int = Field(default=5, ge=1, le=1000)
    clients: int = Field(default=1, ge=1, le=100)
    local_epochs: int = Field(default=1, ge=1, le=20)
    partition: Literal["iid", "shards"] = "iid"
    """How the pictures are divided among clients: at random (iid), or two consecutive parts of the pictures sorted by class (shards)."""
    batch: int = Field(default=128, ge=1, le=1024)
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = Field(default=0.1, gt=0, le=10)
    schedule: Literal["cosine", "steps", "constant"] = "cosine"
    momentum: float = Field(default=0.9, ge=0, lt=1)
    decay: float = Field(default=5e-4, ge=0, le=0.1)
    augment: bool = False
    """Whether pictures are shifted at random by up to 4 pixels and mirrored."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """The precision of the arithmetic; the weights stay float32."""
    # The JSON omits the next two fields at their defaults, so that models trained before these fields existed keep their names.
    defenses: tuple[Part, ...] = Field(default=(), max_length=4, exclude_if=lambda given: given == ())
    server_rate: float = Field(default=1.0, gt=0, le=10, exclude_if=lambda given: given == 1)
    """The factor by which the server multiplies the mean change of the clients' parameters; 1: it takes the mean of their parameters."""
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    max_seconds: int = Field(default=MAX_SECONDS, ge=1, le=24 * 3600)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (3, 32, 32) if self.data == "cifar10" else (1, 28, 28)

    @property
    def num_classes(self) -> int:
        return 10

    @property
    def name(self) -> str:
        """The name of the checkpoint that the training writes: model, data, and a hash of all fields except the time limit."""
        return f"{self.model.id}-{self.data}-{self.model_copy(update={'max_seconds': MAX_SECONDS}).digest()[:8]}"

    @property
    def _local_steps(self) -> LocalSteps:
        """The local steps of the clients; a last batch of one picture is left out, unless `batch` is 1 or the client has one picture."""
        each = -(-self.pictures // self.clients) if self.pictures else FEWEST
        last = (self.pictures - 1) % each + 1 if self.pictures else FEWEST  # the last client has the remaining pictures
        return LocalSteps(1 if 1 in (self.batch, last) else 2, min(self.batch, each), self.image_shape[1])

    def resolve(self, catalog: Catalog) -> "Training":
        """Return the training with the defaults of model and protections filled in; raise SpecError if it cannot run."""
        try:
            model = with_defaults(catalog, "model", self.model)
            defenses = tuple(with_defaults(catalog, "defense", part) for part in self.defenses)
            check_needs(catalog, model, defenses)
            check_steps(catalog, model, defenses, self._local_steps, batch_statistics=True)  # as in every training
        except CatalogError as error:
            raise SpecError(str(error)) from None
        check_size(catalog, model, self.image_shape, self.num_classes)
        return self.model_copy(update={"model": model, "defenses": defenses})


class InverterTraining(Base):
    """A training of an attacker's network, which learns to reconstruct pictures from the updates of one model with protections."""

    version: Literal[1] = VERSION
    model: Part = Part(id="lenet")
    checkpoint: str = Field(default="", max_length=100)
    """The attacked model's trained weights, as "id@rounds"; empty: untrained weights, drawn by the seed."""
    data: Literal["mnist", "cifar10"] = "mnist"
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    batch: int = Field(default=1, ge=1, le=8)
    """The number of pictures in an update."""
    pictures: int = Field(default=20_000, ge=100, le=60_000)
    """The number of training pictures, from the first on."""
    epochs: int = Field(default=30, ge=1, le=1000)
    features: int = Field(default=1024, ge=16, le=4096)
    """The size of the projection of an update."""
    hidden: int = Field(default=600, ge=16, le=4096)
    rate: float = Field(default=1e-3, gt=0, le=1)
    examples: int = Field(default=256, ge=1, le=4096)
    """The number of examples in one step of the training."""
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    max_seconds: int = Field(default=MAX_SECONDS, ge=1, le=24 * 3600)

    @property
    def name(self) -> str:
        """The name of the network: model, data, protections, and a hash of all fields."""
        defenses = "-".join(part.id for part in self.defenses) or "plain"
        return f"{self.model.id}-{self.data}-{defenses}-{self.digest()[:8]}"

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (1, 28, 28) if self.data == "mnist" else (3, 32, 32)

    @property
    def experiment(self) -> Experiment:
        """An (unresolved) experiment; the network learns to undo the updates of its client."""
        private = tuple(Picture(source=self.data, id=str(index)) for index in range(self.batch))
        return Experiment(
            pictures=private,
            size=28 if self.data == "mnist" else 32,
            channels=1 if self.data == "mnist" else 3,
            model=self.model,
            checkpoint=self.checkpoint,
            defenses=self.defenses,
            seed=self.seed,
        )

    def resolve(self, catalog: Catalog) -> "InverterTraining":
        """Return the training with the defaults of model and protections filled in; raise SpecError if it cannot run."""
        resolved = self.experiment.resolve(catalog)
        return self.model_copy(update={"model": resolved.model, "defenses": resolved.defenses})


class Ranks(Base):
    """A measurement of ranks by singular values: of the equations of each convolution, and of the whole gradient of one picture."""

    version: Literal[1] = VERSION
    network: Annotated[str, AfterValidator(canonical)]
    size: Literal[28, 32, 64, 224, 256] = 32
    channels: Literal[1, 3] = 3
    outputs: int = Field(default=10, ge=1, le=MAX_CLASSES)
    """The number of outputs of the network; only the rank of the whole gradient depends on it."""
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    """The seed of the random weights and derivatives."""
    max_seconds: int = Field(default=900, ge=1, le=MAX_SECONDS)

    @model_validator(mode="after")
    def _fits(self) -> "Ranks":
        self._maps()  # raises NetworkError, a ValueError, if a step does not fit its input
        return self

    def _maps(self) -> tuple[Map, ...]:
        return unroll(parse_network(self.network), (self.channels, self.size, self.size), self.outputs)

    @property
    def layers(self) -> tuple[Map, ...]:
        """The convolutions outside residual blocks, including those that are too large to measure."""
        return to_measure(self._maps())

    @property
    def seconds(self) -> float:
        """The expected time of the measurement, in seconds."""
        return sum(seconds(layer) for layer in self.layers if not too_large(layer)) + gradient_seconds(self._maps())

    @property
    def directions(self) -> int:
        """The number of directions of change of the picture in which the whole gradient's rank is measured; 0: the network is too large."""
        return gradient_directions(self._maps())


# settings of an experiment on which the handed-out model depends
OF_HANDED = ("size", "channels", "model", "task", "aggregation", "server", "seed")


class HandedModel(Base):
    """A look at the model that a server hands out in the first round, before a run: which layers it adds or changes, for which clients."""

    version: Literal[1] = VERSION
    size: Side = 32
    channels: Channels = 3
    model: Part = Part(id="lenet")
    task: Literal["classes", "two", "flipped"] = "classes"
    classes: int = Field(default=10, ge=2, le=MAX_CLASSES)
    """The number of classes of the network."""
    aggregation: Part | None = None
    server: Part
    seed: int = Field(default=1, ge=0, le=MAX_SEED)
    """The seed of the network's and the server's random weights."""
    max_seconds: int = Field(default=60, ge=1, le=MAX_SECONDS)

    @staticmethod
    def of(experiment: Experiment) -> "HandedModel":
        """Return the task for a (resolved) experiment with a server; trained weights and protections count as absent."""
        assert experiment.server
        return HandedModel(**{name: getattr(experiment, name) for name in OF_HANDED}, classes=experiment.num_classes)

    @property
    def experiment(self) -> Experiment:
        """An experiment in which the server hands out this model."""
        kept = {name: getattr(self, name) for name in OF_HANDED}
        return Experiment(**kept, outputs=self.classes if self.task == "classes" else 0)

    @property
    def seconds(self) -> float:
        """About how long the look takes, in seconds."""
        return 1.0


# settings of an experiment on which the gradient of a picture without protection depends, beside the seed
OF_GRADIENT = ("size", "channels", "model", "checkpoint", "task", "outputs", "loss", "batch_norm")


class GradientNorms(Base):
    """A measurement of the norm of the gradient of each of the first test pictures of a data set, one picture alone."""

    version: Literal[1] = VERSION
    source: Literal["mnist", "cifar10", "cifar100", "faces", "lfw"]
    count: int = Field(default=200, ge=1, le=1000)
    """The number of pictures, from the first on."""
    size: Side = 32
    channels: Channels = 3
    model: Part = Part(id="lenet")
    checkpoint: str = Field(default="", max_length=100)
    weights: str = Field(default="untrained", max_length=64)
    """The beginning of the SHA-256 of the trained weights: other weights of the same name are another task."""
    task: Literal["classes", "two", "flipped"] = "classes"
    outputs: int = Field(default=0, ge=0)
    loss: Loss = "cross-entropy"
    batch_norm: Literal["eval", "batch"] = "eval"
    seed: int = Field(default=1, ge=0, le=MAX_SEED)
    """The seed of untrained weights; 1 for trained weights, which do not depend on it."""
    max_seconds: int = Field(default=300, ge=1, le=MAX_SECONDS)

    @staticmethod
    def of(experiment: Experiment, weights: str) -> "GradientNorms":
        """Return the task for the model of an experiment and for the data set of its first picture.

        Args:
            experiment: the experiment; its protections, server and rounds count as absent.
            weights: the beginning of the SHA-256 of its trained weights, or "untrained".
        """
        kept = {name: getattr(experiment, name) for name in OF_GRADIENT}
        seed = 1 if experiment.checkpoint else experiment.seed
        return GradientNorms.model_validate({**kept, "source": experiment.pictures[0].source, "weights": weights, "seed": seed})

    @property
    def experiment(self) -> Experiment:
        """An experiment in which one phone sends the gradient of a picture of the data set."""
        kept = {name: getattr(self, name) for name in OF_GRADIENT}
        picture = Picture(source=self.source, id="0")
        return Experiment(**kept, pictures=(picture,), seed=self.seed, assume=Assumptions(labels=True))

    def resolve(self, catalog: Catalog) -> "GradientNorms":
        """Return the task with the defaults of the model filled in; raise SpecError if the model does not fit the pictures."""
        return self.model_copy(update={"model": self.experiment.resolve(catalog).model})

    @property
    def seconds(self) -> float:
        """About how long the measurement takes with a small network, in seconds."""
        return 10.0


Task = Experiment | Training | InverterTraining | Ranks | HandedModel | GradientNorms | AuditTask


def parse_training(text: str | bytes | dict[str, Any]) -> Training:
    """Return a Training from JSON; raise SpecError with the first wrong field, what is allowed and what was given."""
    return parse_as(text, Training, "a training")
