"""What a plug-in of each kind declares for pages, written once: plug-ins and the catalog's entries inherit it. No torch.

A new declaration is an attribute with a default and a docstring in one of these classes. From here it reaches the base class of
plug-ins (`leakage/engine/core.py`), the entries of the catalog (`leakage/spec/catalog.py`), catalog.json and docs/plugins.md.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

# How a model is built: its last layer with weights is linear ("linear"), and follows other layers in a sequence ("sequence").
Structure: TypeAlias = Literal["linear", "sequence"]
LastLayer: TypeAlias = Literal["any", "linear", "bias"]  # what a server needs at the end of a network
Changes: TypeAlias = Literal["parameters", "architecture"]  # what a server changes of the model that it hands out


@dataclass(frozen=True)
class Travels:
    """Phrases for pages on what the clients of a protocol send (by default "update") and on what they keep."""

    what: str = "update"
    """What is sent, to stand after "the"."""
    kept: str = ""
    """What a client keeps from round to round besides its pictures, as symbols."""
    without_steps: str = ""
    """What a client does that takes no local steps."""
    proximal: bool = False
    """Whether a page draws that the local steps are pulled back to the received weights."""
    imitated: str = ""
    """What an adaptive attacker does about the protocol; {steps} stands for the local steps."""
    overlooked: str = ""
    """What a naive attacker overlooks besides the local steps."""
    one_step: bool = False
    """After a single local step, what is sent is the gradient times a publicly known number."""
    other_sums: Mapping[str, str] = field(default_factory=dict)
    """Of an aggregation: what arrives beside the sum. Name of a field, which is a switch or a number of clients -> text with {field}."""
    receiver: str = "the server"
    """Of an aggregation: where the sum arrives and is attacked."""

    def beside_sum(self, fields: Mapping[str, Any], clients: int) -> str:
        """Return in words what arrives beside the sum of all clients; a second sum that also has all clients is left out.

        Args:
            fields: the fields of the aggregation.
            clients: the number of clients in the sum.

        >>> ring = Travels(other_sums={"place": "the sum of {place}", "colluding": "one update"})
        >>> [ring.beside_sum({"place": place, "colluding": place == 1}, 2) for place in (1, 2)]
        ['the sum of 1 phone and one update', '']
        """
        active = {name: fields[name] for name in self.other_sums if fields[name] is True or 0 < fields[name] < clients}
        counts = {name: f"{count} phone{'' if count == 1 else 's'}" for name, count in active.items()}
        return " and ".join(self.other_sums[name].format(**counts) for name in active)


@dataclass(frozen=True)
class Published:
    """The strength at which a protection was reported to stop the attack DLG (Deep Leakage from Gradients)."""

    words: str
    """The report in a sentence."""
    field: str = ""
    """The field that is the strength. Empty: no single field is."""
    ends: tuple[float, float] = (0.0, 0.0)
    """The value of that field at which the attack began to fail, and the value at which it always failed."""


class Declarations:
    """The class attributes by which a plug-in of any kind describes itself to pages and to the engine."""

    title: str
    """What the plug-in does, in plain words, with the field's term in brackets, as a menu shows it."""
    short: str = ""
    """The field's term alone, for tables and titles of runs. Empty: the title."""
    plain: str
    """One sentence on the plug-in for readers without prior knowledge."""
    hint: str
    """What the attacker can learn in a run with the plug-in, and what to try."""
    source: str
    """The address of the paper (https)."""
    presets: Mapping[str, dict[str, Any]] = {}
    """Named settings: name -> the fields that differ from their defaults."""


class AttackDeclarations(Declarations):
    """The class attributes by which an attack describes itself to pages and to the engine."""

    way: str = "Guess, compare, improve."
    """How the attack works, shown below its guess."""
    evaluations_per_step: float = 1
    """How often one step usually replays the client."""
    loss_name: str = "gradient distance"
    """What `Snapshot.loss` measures."""
    reads_labels: bool = False
    """The attack reads labels from the update unless they are granted. The model's last layer must then be linear."""
    mistakes: Mapping[str, str] = {}
    """What the naive attacker does wrong when it imitates the client: the switch that repairs the mistake -> the mistake in words."""
    strongest: dict[str, Any] | None = None
    """The fields with which the attack is tried among the strongest known attackers. None: it is not tried there."""
    in_place_of_steps: str = ""
    """What the attack uses instead of the client's local steps, in words. Empty: it imitates these steps."""
    learned: bool = False
    """The attack needs a network that was trained beforehand to undo updates (`Granted.learned`)."""
    ends_without: str = ""
    """The tensors of an update without which the attack does not work, in words. Empty: it works with any tensors."""
    fits: Mapping[str, tuple[Any, ...]] = {}
    """The experiments that it fits: "pictures", "precision", "model" or "server" ("honest", or what it changes) -> the values allowed."""


class DefenseDeclarations(Declarations):
    """The class attributes by which a defense describes itself to pages and to the engine."""

    stage: str = "gradient"
    """Where the defense acts: "gradient" in each local step, "update" on what is sent."""
    imitation: str = "known and imitated"
    """What `surrogate` does, in words."""
    elementwise: bool = False
    """`surrogate` treats every entry alike, so several guesses can be replayed at once."""
    needs: Mapping[str, str] = {}
    """The fields that the model must have, and their values."""
    needs_structure: Mapping[Structure, str] = {}
    """How the model must be built -> what pages say of a model that is built otherwise."""
    one_by_one: bool = False
    """The defense asks for the gradient of each picture of a local step separately."""
    needs_step: str = ""
    """What pages say if another defense before this one takes the pictures of a step one by one. Empty: that is possible."""
    published: Published | None = None
    """The strength at which the defense was reported to stop DLG."""
    backfires: str = ""
    """Why an attacker that knows the defense does worse, where that was measured."""


class ProtocolDeclarations(Declarations):
    """The class attributes by which a protocol of federated learning describes itself to pages and to the engine."""

    is_aggregation: bool = False
    """The protocol adds up the updates of another protocol's clients, as secure aggregation does."""
    sends_gradient: bool = False
    """The client sends the gradient of one step, and nothing else."""
    travels: Travels = Travels()
    """What is sent, what the client keeps, and what attackers make of it, in words."""
    elementwise: bool = False
    """Weights may have an extra first dimension: several guesses are replayed at once, each with its own weights."""


class ModelDeclarations(Declarations):
    """The class attributes by which a model describes itself to pages and to the engine."""

    smallest: int = 1
    """The shortest side of a picture that the model can take, in pixels."""
    smallest_alone: int = 1
    """The shortest side of a picture that is alone in a local step, if BatchNorm uses the statistics of the step."""
    structure: tuple[Structure, ...] = ("linear", "sequence")
    """How the model is built, as defenses may need it."""


class ServerDeclarations(Declarations):
    """The class attributes by which a server that changes the model describes itself to pages and to the engine."""

    changes: Changes = "parameters"
    """What the server changes: the values of the model's parameters ("parameters"), or the network itself ("architecture")."""
    rounds: int = 1
    """How many rounds the server needs at least."""
    reading: tuple[str, ...] = ()
    """The ids of the attacks that read what the server has built in; the first is offered together with the server."""
    granted: tuple[str, str] | None = None
    """What the server knows of such pictures beforehand: a heading, and a text with {field}. None: nothing."""
    widths: tuple[str, ...] = ()
    """The fields of which the product is the number of units of the layer that the server puts in front of the network."""
    models: Mapping[str, Mapping[str, tuple[Any, ...]]] = {}
    """The models that the server can change: id of a model -> field of the model -> the values allowed. Empty: any model."""
    kernels_alone: bool = False
    """In the text of such a model only convolutions that can hand on a picture may come before the first linear layer."""
    needs_model: str = ""
    """What pages say of a model that the server cannot change."""
    own_maps: bool = False
    """In front of that layer each client has maps of its own: one for each channel of its pictures, and one more."""
    last_layer: LastLayer = "any"
    """What the server needs as the last layer: a linear layer ("linear"), also with a bias and one output for each class ("bias")."""
    classes: tuple[str, ...] = ()
    """The fields that name a class of the network, as a number from 0."""
    separates: bool = False
    """The server separates pictures of a batch, so BatchNorm must use its stored statistics."""
    separates_by_class: bool = False
    """The server separates the pictures of a class that it chooses, so it knows their labels."""
    one_step: bool = False
    """The server needs clients that take a single local step."""
    clients: int = 1
    """How many clients must be added up at least."""
    client_field: str = ""
    """The field that names a client, as a number from 1. Empty: there is none."""


class CheckDeclarations(Declarations):
    """The class attributes by which a check of the received model describes itself to pages and to the engine."""

    measures: str = ""
    """What the number of the check says, in words that follow "measures"."""
    compares: Literal["", "clients", "pictures"] = ""
    """What the check is not defined for if there is one alone: the clients that are added up, or the pictures of a client."""


@dataclass(frozen=True)
class StrategyDeclarations:
    """The properties of an adaptive strategy (what an attacker does about a defense), for pages and for the engine."""

    description: str
    """What the attacker does, in words that follow the defense's name and "is"."""
    _: KW_ONLY
    title: str = ""
    """The strategy's name on the page. Empty: the name under which the defense offers it."""
    averaging: bool = False
    """The strategy combines the updates of all rounds up to the attacked round, so it needs several rounds."""
    exact: bool = False
    """The strategy works with the very numbers received, so nothing may change them after the defense."""
    colluding: bool = False
    """The strategy needs a client that works with the attacker: the state holds its gradient, by ACCOMPLICE and parameter."""
    optimize_latents: bool = False
    """Attacks optimize the client's hidden values together with the pictures, and start from `latent_init`."""
    latent_per_picture: bool = False
    """Each picture has its own values in the buffers of `latent_init`, so attacks add a first dimension for the pictures."""


DECLARED: dict[str, type] = {  # heading -> the class with these declarations
    "Every plug-in": Declarations,
    "An attack": AttackDeclarations,
    "A defense": DefenseDeclarations,
    "An adaptive strategy of a defense": StrategyDeclarations,
    "A protocol": ProtocolDeclarations,
    "A model": ModelDeclarations,
    "A server": ServerDeclarations,
    "A check": CheckDeclarations,
}


def explanations(owner: type) -> dict[str, str]:
    """Return the attribute docstrings of a class, without those that it inherits.

    Returns:
        Name of the attribute -> its docstring, in their order.

    >>> explanations(ModelDeclarations)["smallest"]
    'The shortest side of a picture that the model can take, in pixels.'
    """
    texts: dict[str, str] = {}
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    for pair in pairwise(body.body):
        match pair:
            case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                texts[name] = inspect.cleandoc(text)
    return texts
