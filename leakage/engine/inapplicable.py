"""An attack that cannot work on a setting, by construction: an outcome of its own, which is neither an answer nor a failure."""


class DoesNotApplyError(ValueError):
    """This attack cannot work on this setting. The message is a sentence for the page: why, and what would work.

    An attack raises it where that is certain from the model, the size of the batch and which parts of the update arrived, whatever the
    pictures are: the layer that it reads is missing or is followed by another activation, the batch has too many pictures, nothing was
    sent for that layer. An attack that tried and failed gives an answer instead: its picture, or grey, and what went wrong as an event.
    """


class UnreadableLabelsError(DoesNotApplyError):
    """The update says no labels, and this attack needs them: granted labels would make it apply. The message says why."""
