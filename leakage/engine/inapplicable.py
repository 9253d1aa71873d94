"""An attack that cannot work in a setting, by construction: an outcome that is neither an answer nor a failure."""


class DoesNotApplyError(ValueError):
    """The attack cannot work in this setting. The message is a sentence for the page: why, and what would help.

    An attack raises this error where the model, the batch size and the parts of the update that arrived exclude an answer, whatever the
    pictures are: the layer that it reads is missing, another activation follows the layer, the batch has too many pictures, or nothing was
    sent for the layer. An attack that tried and failed gives an answer instead: its picture, or gray, and the failure as an event.
    """


class UnreadableLabelsError(DoesNotApplyError):
    """The update shows no labels, and the attack needs them; it would apply with granted labels. The message says why."""
