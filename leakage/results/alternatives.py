"""Every protection of the precomputed results: how much its strongest attacker saw, and what the protection cost a training."""

from collections.abc import Callable
from dataclasses import dataclass

from leakage.results.accuracy_cost import Cost, cost
from leakage.results.differences import sentence_case
from leakage.results.nearest import Nearest, nearest
from leakage.results.precomputed import Line, matrix, reach, seen_words
from leakage.runs.reader import RunReader
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part
from leakage.spec.question import Question, in_words_of

ANOTHER = (
    "What the best attacker of the precomputed results saw of one picture of each phone. The server was honest, the network small and "
    "untrained (LeNet), and the pictures were small and in colour (CIFAR-10). An attacker that averages rounds of training had 16 rounds. "
    "What was not shown there is not shown safe."
)
MARKED = "The rows nearest to your question are marked, and their attackers are tried first."
CHANGED = "The rows nearest to your question are marked. They say little about a server that changes the model."


@dataclass(frozen=True)
class Alternative:
    """A protection of the precomputed results: what its strongest attacker saw, and the protection's accuracy cost."""

    title: str
    stack: tuple[Part, ...]
    chosen: bool
    """Whether its row is among the rows nearest to the question."""
    seen: str
    """What its strongest attacker saw, and in how many runs."""
    attacker: str
    """Its strongest attacker, in words."""
    cost: Cost


def about_rows(question: Question) -> str:
    """Return the text above the table: how its rows were measured, and which rows are marked."""
    return in_words_of(question, f"{ANOTHER} {CHANGED if question.attacker == 'changes' else MARKED}")


def alternatives(
    asked: Experiment, reader: RunReader, known: Catalog, named: Callable[[str], str] = lambda title: title
) -> list[Alternative]:
    """List every protection of the main table of precomputed results, and mark the rows nearest to an experiment.

    If a nearest row is in another table, that row is added at the front.

    Args:
        asked: the experiment; the rows nearest to it are marked.
        reader: the runs, for trainings on this machine.
        known: the plug-ins.
        named: returns a title with the question's word for clients, such as "clinics".
    """
    rows = nearest(asked, known)
    lines = [line for line in matrix(known) if line.duels]
    others = [line for line in rows.lines if line not in lines]
    return [row for line in [*others, *lines] if (row := _alternative(line, rows, reader, known, named))]


def _alternative(line: Line, rows: Nearest, reader: RunReader, known: Catalog, named: Callable[[str], str]) -> Alternative | None:
    cells = [(attack, cell) for attack, duel in line.duels.items() for cell in (duel.naive, duel.best) if cell and "psnr" in cell]
    if not cells:
        return None
    attack, best = max(cells, key=lambda pair: reach(pair[1]))
    behind = cost(reader, Experiment(defenses=line.stack), known)
    attacker = f"{known.attacks.get(attack).short}, {known.strategy_title(best['who'])}"
    chosen = line in rows.lines
    title = line.title
    if rows.scene and chosen and rows.scene.about:
        title = f"{title} ({rows.scene.title[:1].lower()}{rows.scene.title[1:]})"
    return Alternative(named(title), line.stack, chosen, sentence_case(seen_words(best)), attacker, behind)
