"""An answer in words, line by line, for the page and for paper: the question, the findings, and what was not tried."""

from collections.abc import Sequence

from leakage.results import worst_case
from leakage.results.answer import NOT_SAFE, Answer
from leakage.results.comparison import Row
from leakage.results.differences import protection, sentence_case
from leakage.results.durations import duration
from leakage.results.promise import NONE_PROMISED, Promise, promise_before, sentence
from leakage.spec.catalog import Catalog
from leakage.spec.conclusion import UNPUBLISHED
from leakage.spec.experiment import Experiment, Part
from leakage.spec.gaussian_privacy import USEFUL
from leakage.spec.prepared import prepared
from leakage.spec.question import ATTACKERS, STEPS, Question, in_words_of, strangers
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, NOT_SHOWN, REFUSED, counted, format_value

CHEATING = (
    "A server that cheats was not tried. It can change the model that it sends, so that single pictures can be read off (choose that under "
    "“Who attacks?” to try it). It can leave phones out of the sum until one is left, or bring phones of its own into it. Then a sum "
    "protects little."
)
CHEATING_MORE = (
    "A server that cheats in other ways than sending one model again and again. It can change the model that it sends, so that single "
    "pictures can be read off (choose that under “Who attacks?” to try it). It can leave phones out of the sum until one is left, or bring "
    "phones of its own into it. Then a sum protects little."
)
CHEATING_OTHERWISE = (
    "A server that changes the model in another way than those tried, leaves phones out of the sum until one is left, or brings phones of "
    "its own into it."
)
LEFT_OUT = (
    UNPUBLISHED,
    "Other networks. All attacks were on a small untrained network (LeNet). A wider network gives more away, a trained network often less.",
    "Other pictures, larger pictures, more rounds of training, more time.",
)
HOLDS = (
    "What differential privacy promises (above) does not depend on the attack: weigh whether the promised factor is small enough for you."
)
HOLDS_NOT = "Differential privacy at this strength promises nothing of use either (above): ask for a smaller epsilon."
CHECKED = "The phones check the model that they receive, and send nothing if a check raises an alarm"
CONTROL = "Control, protection off"
NO_CONTROL = "You asked about no protection, so no control is needed"


def attack_and_attacker(row: Row) -> str:
    """Name the attack of a run, the server if it changes the model, and the attacker where the attacker's knowledge matters."""
    words = worst_case.attacker_words(row)
    attack = f"{row.attack}, by a server that changes the model ({row.server})" if row.server else row.attack
    return f"{attack}, by an attacker that {words}" if words else attack


def protection_words(defenses: Sequence[Part], known: Catalog) -> str:
    """Describe protections with the values of all their fields, such as "DP-SGD, max grad norm 1, noise multiplier 0.01"."""

    def every_number(part: Part) -> str:
        entry = known.defenses.find(part.id)
        if entry is None:
            return protection([part], [part], known)
        values = entry.resolve(part.fields)
        numbers = [f"{field.name.replace('_', ' ')} {format_value(values[field.name])}" for field in entry.fields]
        return ", ".join([entry.short, *numbers])

    return ", then ".join(every_number(part) for part in defenses) or "No protection"


def scenario_words(question: Question, known: Catalog) -> list[tuple[str, str]]:
    """List the question as pairs of a topic and a description."""
    steps = prepared().ask.several.fields.get("epochs", "several")
    others = f"; {strangers(question)} of them are of other kinds, as there are too few of this kind here" if strangers(question) else ""
    lines = [
        ("Pictures", f"{_pictures(question)}{others}"),
        ("Participants", _phones(question)),
        ("In one update", _sent(question)),
        ("What a phone does", STEPS[question.steps].replace("Several steps", f"{steps} steps")),
        ("Uploads", f"{question.uploads:,} upload{'s' * (question.uploads > 1)} by each phone in the whole training"),
        ("Protection", _protection(question, known)),
        ("Attacker", ATTACKERS[question.attacker]),
        *([("Checks", f"{CHECKED}: {_checks(question, known)}")] if question.checked else []),
        ("Effort", f"{question.minutes} min on this machine"),
    ]
    return [(in_words_of(question, about), in_words_of(question, words)) for about, words in lines]


def _checks(question: Question, known: Catalog) -> str:
    return ", ".join(entry.short for part in question.checked if (entry := known.checks.find(part.id)))


def _sent(question: Question) -> str:
    pictures = counted(question.each, "picture")
    return pictures if question.clients == 1 else f"{pictures} of each phone, {question.pictures} in all"


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


def lines(answer: Answer, question: Question, known: Catalog) -> list[tuple[str, str]]:
    """List the findings as pairs of a topic and a description: what was seen, the control, labels, privacy, and what that means.

    If the phone refused in all runs, the headline says so, and the control is the only finding.
    """
    if answer.word == REFUSED:
        return [(CONTROL, sentence_case(_control(answer)))] if answer.control else []
    best = answer.best
    findings = [
        ("Could be seen", people_words(answer)),
        (CONTROL, _control(answer)),
        ("What each picture shows", _labels(answer, question)),
        ("Differential privacy", _privacy(answer, question, known)),
        ("What the result means", answer.meaning),
        ("To decide", _decision(answer, question, known)),
        ("Shown most by" if best and best.shows else "Came nearest", attack_and_attacker(best) if best else ""),
        ("How the result is known", (best and best.words) or ""),
        ("How much effort the attacks took", effort(answer)),
    ]
    return [(about, sentence_case(in_words_of(question, words))) for about, words in findings if words]


def people_words(answer: Answer) -> str:
    """Describe how many pictures came to which verdict, or say that nothing is known if none came to any."""
    if answer.people == {CUT_SHORT: answer.total}:
        which = f"none of the {answer.total} was tried to the end" if answer.total > 1 else "it was not tried to the end"
        return "Nothing is known: no attack has ended" if answer.open else f"Nothing is known: {which}"
    if answer.people == {INAPPLICABLE: answer.total}:
        return "Nothing is known: none of these attacks applies"
    names = {NOT_SHOWN: "not shown by these attacks", CUT_SHORT: "not tried to the end", INAPPLICABLE: "attacked by none"}
    names[REFUSED] = "of which the phone sent nothing"
    counts = ", ".join(f"{count} {names.get(word, word)}" for word, count in answer.people.items())
    return f"{counts}, of {counted(answer.total, 'picture')}"


def _labels(answer: Answer, question: Question) -> str:
    if answer.labels is None:
        return ""
    kind = prepared().ask.kinds.get(question.who)
    private = kind.label if kind and answer.labels.named > answer.labels.blind else ""
    return f"{answer.labels.words}. Such a label may be {private}" if private else answer.labels.words


def _control(answer: Answer) -> str:
    if answer.control is None:
        return NO_CONTROL if not answer.protected else "Not run"
    doubt = answer.control.doubt(answer.recognized)
    return " ".join(filter(None, [f"{answer.control.words}.", doubt, answer.control.how])) if doubt else answer.control.words


def _promise(answer: Answer, question: Question, known: Catalog) -> Promise | None:
    """Return the differential privacy of the question's protections, computed from the question, or else as the runs report it.

    None if the question has no protection, or if no differential privacy is promised.
    """
    return promise_before(question, known) or answer.promise if question.defenses else None


def _decision(answer: Answer, question: Question, known: Catalog) -> str:
    """Return what a decision should assume, and, if no attack succeeded, what the protection promises against every attack."""
    promise = _promise(answer, question, known)
    if answer.word != NOT_SAFE or promise is None:
        return answer.decision
    useful = promise.epsilon(question.uploads) <= USEFUL
    return f"{answer.decision} {HOLDS if useful else HOLDS_NOT}"


def _privacy(answer: Answer, question: Question, known: Catalog) -> str:
    if not question.defenses:
        return ""
    if promise := _promise(answer, question, known):
        return sentence(promise, question.uploads)
    return "" if any(known.defenses.get(part.id).private for part in question.defenses) else NONE_PROMISED


def effort(answer: Answer) -> str:
    """Describe how many runs came to an answer, and how long they took."""
    answered = sum(row.answered for row in answer.rows)
    idle, refused = sum(bool(row.inapplicable) for row in answer.rows), sum(bool(row.refused) for row in answer.rows)
    planned = counted(len(answer.rows) - idle - refused, "planned run")
    words = f"{answered} of {planned} came to an answer of their own, {duration(answer.seconds)} of computing"
    words += f"; {idle} more do not apply here" if idle else ""
    words += f"; in {refused} more the phone sent nothing" if refused else ""
    return f"{words}{answer.when}"


def not_tried(question: Question, answer: Answer, known: Catalog) -> list[str]:
    """List sentences on what the answer does not cover: stronger attacks, attacks without an answer, and other limits."""

    def titles(ids: frozenset[str]) -> str:
        return ", ".join(entry.short for entry in known.attacks if entry.id in ids)

    words = [f"A stronger known attack: {answer.stronger}."] if answer.stronger else []
    if broken_off := titles(answer.begun - answer.tried):
        words.append(f"Begun, and broken off before an answer: {broken_off}.")
    words += [f"{titles(frozenset({attack}))} does not apply here, and was not tried: {why}" for attack, why in answer.idle.items()]
    unfit = _unfit(question, known)
    words += [f"{titles(frozenset({attack}))} was not tried: {why}" for attack, why in unfit.items()]
    others = frozenset(entry.id for entry in known.attacks) - answer.begun - frozenset(answer.idle) - frozenset(unfit)
    if titles(others):
        words.append(f"These attacks, which this program has: {titles(others)}.")
    if answer.cut:
        words.append(
            f"{answer.cut} of {counted(sum(not row.untried for row in answer.rows), 'run')} did not come to an answer of their own. "
            "What they had shown until then counts. What they had not shown says nothing."
        )
    if servers := [entry.short for entry in known.servers if answer.servers and entry.id not in answer.servers]:
        words.append(f"These changes of the model, which this program has: {', '.join(servers)}.")
    cheating = [{"still": CHEATING_MORE, "changes": CHEATING_OTHERWISE}.get(question.attacker, CHEATING)]
    return [in_words_of(question, sentence) for sentence in [*words, *cheating, *LEFT_OUT]]


def _unfit(question: Question, known: Catalog) -> dict[str, str]:
    """Return the attacks that do not accept this number of pictures in an update: id -> the reason."""
    reasons: dict[str, str] = {}
    for entry in known.attacks:
        allowed = entry.fits.get("pictures", ())
        if allowed and question.pictures not in allowed:
            limit = max(allowed) if question.pictures > max(allowed) else min(allowed)
            most = f"{'at most' if question.pictures > limit else 'at least'} {counted(limit, 'picture')}"
            reasons[entry.id] = f"it is for {most} in one update. The update that you ask about has {question.pictures}."
    return reasons
