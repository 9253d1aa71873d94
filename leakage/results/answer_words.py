"""An answer in words, line by line, for the page and for paper: what was asked, what was found, and what was not tried."""

from collections.abc import Sequence

from leakage.results import worst_case
from leakage.results.answer import NOT_SAFE, Answer
from leakage.results.comparison import Row
from leakage.results.differences import protection, sentence_case
from leakage.results.durations import duration
from leakage.results.promise import NONE_PROMISED, Promise, promise_before, sentence
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part
from leakage.spec.gaussian_privacy import USEFUL
from leakage.spec.prepared import prepared
from leakage.spec.question import ATTACKERS, STEPS, Question, in_words_of, strangers
from leakage.spec.threat_model import counted, format_value
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, NOT_SHOWN

CHEATING = (
    "A server that cheats was not tried. It can send a model built to keep pictures apart in one update, leave all phones but one out of "
    "the sum, or bring phones of its own into it. Then a sum protects little."
)
CHEATING_MORE = (
    "A server that cheats in other ways than sending one model again and again. It can send a model built to keep pictures apart in one "
    "update, leave all phones but one out of the sum, or bring phones of its own into it. Then a sum protects little."
)
LEFT_OUT = (
    "Attacks that nobody has published, or that this program does not have, and attackers who learned from other pictures of the same "
    "people.",
    "Other networks. All this is on the small network (LeNet), untrained; a wider one gives more away, a trained one often less.",
    "Other pictures, larger ones, more rounds, more time.",
)
HOLDS = "What differential privacy promises (above) does not depend on the attack: weigh whether that factor is small enough for you."
HOLDS_NOT = "Nor does differential privacy at this strength promise anything of use (above): ask for a smaller epsilon."
NO_CONTROL = "No protection was asked about: this answer is its own control"


def who(row: Row) -> str:
    """The attack of a run, and by whom."""
    words = worst_case.attacker_words(row)
    return f"{row.attack}, by somebody who {words}" if words else row.attack


def protection_words(stack: Sequence[Part], known: Catalog) -> str:
    """Protections with every number that they have, as strengths: DP-SGD, max grad norm 1, noise multiplier 0.01."""

    def every_number(part: Part) -> str:
        entry = known.defenses.find(part.id)
        if entry is None:
            return protection([part], [part], known)
        values = entry.resolve(part.fields)
        numbers = [f"{field.name.replace('_', ' ')} {format_value(values[field.name])}" for field in entry.fields]
        return ", ".join([entry.short, *numbers])

    return ", then ".join(every_number(part) for part in stack) or "No protection"


def scenario_words(question: Question, known: Catalog) -> list[tuple[str, str]]:
    """The question, line by line."""
    steps = prepared().ask.several.fields.get("epochs", "several")
    others = f"; {strangers(question)} of them are of other kinds, as there are too few of this kind here" if strangers(question) else ""
    lines = [
        ("Pictures", f"{_pictures(question)}{others}"),
        ("Who takes part", _phones(question)),
        ("In one update", _sent(question)),
        ("What a phone does", STEPS[question.steps].replace("Several steps", f"{steps} steps")),
        ("Uploads", f"{question.uploads:,} upload{'s' * (question.uploads > 1)} by each phone in the whole training"),
        ("Protection", _protection(question, known)),
        ("Attacker", ATTACKERS[question.attacker]),
        ("Effort", f"{question.minutes} min on this machine"),
    ]
    return [(in_words_of(question, about), in_words_of(question, words)) for about, words in lines]


def _sent(question: Question) -> str:
    own = counted(question.each, "picture")
    return own if question.clients == 1 else f"{own} of each phone, {question.pictures} in all"


def _pictures(question: Question) -> str:
    kind = "Your own pictures" if question.who == "own" else prepared().ask.kinds[question.who].title
    channels = question.channels if question.who == "own" else prepared().ask.kinds[question.who].channels
    return f"{kind}, {Experiment().size} px, {'grey' if channels == 1 else 'in colour'}"


def _phones(question: Question) -> str:
    if question.clients == 1:
        return "One phone by itself"
    words = f"{question.clients} phones, added up before the server sees them (secure aggregation)"
    if not question.colluding:
        return words
    works = "phone works" if question.colluding == 1 else "phones work"
    left = f"a sum of {question.honest}" if question.honest > 1 else "the update of one phone by itself"
    return f"{words}. {question.colluding} {works} with the server, which subtracts what they sent: {left} is left"


def _protection(question: Question, known: Catalog) -> str:
    words = protection_words(question.defenses, known)
    asked = f" (asked for by epsilon {question.epsilon:g} after {counted(question.uploads, 'upload')})" if question.epsilon else ""
    return words + asked


def lines(told: Answer, question: Question, known: Catalog) -> list[tuple[str, str]]:
    """What was found: what could be seen, the control, labels, the privacy budget, and what that means."""
    best = told.best
    found = [
        ("Could be seen", people_words(told)),
        ("Control, protection off", _control(told)),
        ("What each picture shows", _labels(told, question)),
        ("Differential privacy", _privacy(told, question, known)),
        ("What that means", told.meaning),
        ("To decide", _decision(told, question, known)),
        ("Shown most by" if best and best.shows else "Came nearest", who(best) if best else ""),
        ("How that is known", (best and best.words) or ""),
        ("With how much effort", effort(told)),
    ]
    return [(about, sentence_case(in_words_of(question, words))) for about, words in found if words]


def people_words(told: Answer) -> str:
    """Of how many pictures what could be seen; in one sentence where it is the same of all."""
    if told.people == {CUT_SHORT: told.total}:
        which = f"all {told.total}" if told.total > 1 else "it"
        return "Nothing is known: no attack has ended" if told.open else f"Time ran out on {which}: nothing is known"
    if told.people == {INAPPLICABLE: told.total}:
        return "Nothing is known: none of these attacks applies"
    names = {NOT_SHOWN: "not shown by these attacks", CUT_SHORT: "on which time ran out", INAPPLICABLE: "attacked by none"}
    counts = ", ".join(f"{count} {names.get(word, word)}" for word, count in told.people.items())
    return f"{counts}, of {counted(told.total, 'picture')}"


def _labels(told: Answer, question: Question) -> str:
    if told.labels is None:
        return ""
    kind = prepared().ask.kinds.get(question.who)
    private = kind.label if kind and told.labels.named > told.labels.blind else ""
    return f"{told.labels.words}. Such a label may be {private}" if private else told.labels.words


def _control(told: Answer) -> str:
    if told.control is None:
        return NO_CONTROL if not told.protected else "Not run"
    doubt = told.control.doubt(told.recognized)
    return " ".join(filter(None, [f"{told.control.words}.", doubt, told.control.how])) if doubt else told.control.words


def _promise(told: Answer, question: Question, known: Catalog) -> Promise | None:
    """The exact figure of the protection asked about, or what the runs state; None where nothing is promised."""
    return promise_before(question, known) or told.promise if question.defenses else None


def _decision(told: Answer, question: Question, known: Catalog) -> str:
    """What somebody may go by who decides: where no attack succeeded, also what the protection promises against every attack."""
    promise = _promise(told, question, known)
    if told.word != NOT_SAFE or promise is None:
        return told.decision
    useful = promise.epsilon(question.uploads) <= USEFUL
    return f"{told.decision} {HOLDS if useful else HOLDS_NOT}"


def _privacy(told: Answer, question: Question, known: Catalog) -> str:
    if not question.defenses:
        return ""
    if found := _promise(told, question, known):
        return sentence(found, question.uploads)
    return "" if any(known.defenses.get(part.id).private for part in question.defenses) else NONE_PROMISED


def effort(told: Answer) -> str:
    """How many runs came to an answer, and how long they took."""
    answered = sum(row.answered for row in told.rows)
    applying = sum(not row.inapplicable for row in told.rows)
    words = f"{answered} of {counted(applying, 'planned run')} came to an answer of their own, {duration(told.seconds)} of computing"
    if applying < len(told.rows):
        words += f"; {len(told.rows) - applying} more do not apply here"
    return f"{words}{told.when}"


def not_tried(question: Question, told: Answer, known: Catalog) -> list[str]:
    """What the answer says nothing of."""

    def titles(ids: frozenset[str]) -> str:
        return ", ".join(entry.short for entry in known.attacks if entry.id in ids)

    words = [f"A stronger known attack: {told.stronger}."] if told.stronger else []
    if broken_off := titles(told.begun - told.tried):
        words.append(f"Begun, and broken off before an answer: {broken_off}.")
    words += [f"{titles(frozenset({attack}))} does not apply here, and was not tried: {why}" for attack, why in told.idle.items()]
    unfit = _unfit(question, known)
    words += [f"{titles(frozenset({attack}))} was not tried: {why}" for attack, why in unfit.items()]
    others = frozenset(entry.id for entry in known.attacks) - told.begun - frozenset(told.idle) - frozenset(unfit)
    if titles(others):
        words.append(f"These attacks of this program: {titles(others)}.")
    if told.cut:
        words.append(
            f"{told.cut} of {counted(sum(not row.inapplicable for row in told.rows), 'run')} did not come to an answer of their own. What "
            "they had shown until then counts; what they had not shown says nothing."
        )
    cheating = [CHEATING_MORE if question.attacker == "still" else CHEATING]
    return [in_words_of(question, one) for one in [*words, *cheating, *LEFT_OUT]]


def _unfit(question: Question, known: Catalog) -> dict[str, str]:
    """Attacks by id that are for fewer or more pictures in one update than there are, and why."""
    found: dict[str, str] = {}
    for entry in known.attacks:
        allowed = entry.fits.get("pictures", ())
        if allowed and question.pictures not in allowed:
            limit = max(allowed) if question.pictures > max(allowed) else min(allowed)
            most = f"{'at most' if question.pictures > limit else 'at least'} {counted(limit, 'picture')}"
            found[entry.id] = f"it is for {most} in one update, and here are {question.pictures}."
    return found
