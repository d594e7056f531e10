"""One call at a door: however the kernel takes the bytes, each line is told of truly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from carrier.calls import Call
from carrier.notices import Ear

ENDS = ("eof", "broken", "stalled")


class Kernel:
    """A connection that takes its *portions* one by one, and then ends as it is told."""

    def __init__(self, portions: list[int], end: str, *, all_taken: bool):
        self.portions, self.end, self.all_taken = portions, end, all_taken
        self.taken = b""
        self.half_closed = False

    def send(self, part: bytes) -> int:
        """The next portion; 0 stands for a buffer that is full for a moment."""
        if self.portions:
            portion = self.portions.pop()
            if portion == 0:
                raise BlockingIOError
        elif self.all_taken:
            portion = len(part)
        elif self.end == "broken":
            raise BrokenPipeError
        else:
            raise BlockingIOError
        self.taken += bytes(part[:portion])
        return min(portion, len(part))

    def shutdown(self, _: int) -> None:
        """Nothing more will come."""
        self.half_closed = True

    def recv(self, _: int) -> bytes:
        """The end, or what stands in its place."""
        if self.end == "eof":
            return b""
        raise ConnectionResetError if self.end == "broken" else BlockingIOError


class Deaf(Ear):
    """A reply socket that hears nothing."""

    def __init__(self, msg_ids: list[str]):
        self.notices = {msg_id: [] for msg_id in msg_ids}
        self.path = "/r"


@settings(max_examples=500, deadline=None)
@given(
    auth=st.binary(max_size=9),
    lines=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=12),
    portions=st.lists(st.integers(0, 30), max_size=12),
    end=st.sampled_from(ENDS),
    all_taken=st.booleans(),
)
def test_a_line_is_untouched_exactly_when_no_byte_of_it_was_taken(
    auth: bytes, lines: list[bytes], portions: list[int], end: str, *, all_taken: bool
) -> None:
    """Bytes go in order, once; written lines come first, and only a whole speech can be read."""
    frames = {f"{number}": line for number, line in enumerate(lines)}
    kernel = Kernel(portions, end, all_taken=all_taken)
    call = Call(kernel, Deaf([*frames]), auth, frames)  # type: ignore[arg-type]
    speech = auth + b"".join(lines)
    for _ in range(15):
        if not call.is_over:
            call.go_on()
    answers = call.answers()

    assert speech.startswith(kernel.taken)
    start = len(auth)
    for msg_id, frame in frames.items():
        assert (len(kernel.taken) > start) is answers[msg_id].wrote
        start += len(frame)
    whole = kernel.taken == speech
    assert kernel.half_closed is whole
    assert {whole and end == "eof"} == {a.eof for a in answers.values() if a.wrote} or not whole
    assert [msg_id for msg_id, answer in answers.items() if answer.wrote] == call.written()
    assert whole is not call.pushes()
