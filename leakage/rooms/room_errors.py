"""What a room refuses, in a sentence for the person who asked."""


class RoomError(Exception):
    """A request that a room does not grant; `status` is the HTTP status of the response."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


NO_ROOM = "There is no room with this code. It was closed, or the code is mistyped. Ask your teacher for the code."
LOCKED = "The door of this room is locked. Ask your teacher to unlock it."
FULL = "This room is full: it holds {} phones."
TOO_MANY = "There are {} rooms open on this server already. Close one of them first."
WRONG_KEY = "Only the teacher who opened this room may do that."
ANOTHER_BEAT = "The class is at another part of the lesson now."
TOO_LATE = "The answer has been shown: no more votes are counted."
NO_BEAT = "The lesson has no part {}; its parts are 1 to {}."
NO_OPTION = "The question of part {} has no option {}; its options are 0 to {}."
NO_CELL = "The what-ifs of part {} have no cell {}; their cells are 0 to {}."
NO_QUESTION = "Part {} asks no question."
NO_GRID = "Part {} has no what-ifs to try."
TEACHER_ONLY = "Only the teacher may start a run in this room. You can look at the recorded results."
ONE_AT_A_TIME = "Your last run has not ended yet. Wait for it, then start another."
