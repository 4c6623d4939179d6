"""Progress: what is said of a sweep on a terminal and in a log, and how often."""

import contextlib
import io
import os
import re
import sys
import threading

import pytest
import supervising
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.measuring.progress import Progress


class Clock:
    """Goes on when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def plain(total, **options):
    """Progress of ``h200`` in a log, and its clock."""
    stream, clock = io.StringIO(), Clock()
    return Progress(total, "h200", stream, clock, **options), stream, clock


def measure(progress, clock, rows, seconds):
    """``rows`` rows of a millisecond, ``seconds`` each."""
    for _ in range(rows):
        clock.now += seconds
        progress.row("ok", 1.0, "block1d bx=64")


def test_a_log_has_a_first_line_then_one_now_and_then_and_a_last_one():
    progress, stream, clock = plain(3204)
    with progress:
        assert stream.getvalue() == ""
        progress.problem("n=512 dtype=float32 order=8")
        clock.now += 5
        progress.row("ok", 0.10856, "block3d bx=64 by=4 bz=1")
        first = (
            "h200: 1 of 3204 rows, time left unknown, "
            "best 0.1086 ms block3d bx=64 by=4 bz=1 at n=512 dtype=float32 order=8\n"
        )
        assert stream.getvalue() == first
        measure(progress, clock, 338, 30 / 339)
        assert stream.getvalue() == first
        measure(progress, clock, 1, 30 / 339)
    # 2864 rows at 11.3 a second.
    second = first.replace("1 of", "340 of").replace(
        "time left unknown", "11 rows/s, 4 min 13 s left"
    )
    last = first.replace(
        "1 of 3204 rows, time left unknown", "340 of 3204 rows in 35 s, 9.7 rows/s"
    )
    assert stream.getvalue() == first + second + last


@pytest.mark.parametrize(
    ("rows", "seconds", "said"), read_yaml(ROOT / "tests/measuring/data/progress.yaml")
)
def test_rate_and_time_left_are_plain_numbers(rows, seconds, said):
    progress, stream, clock = plain(1000, every_s=0)
    measure(progress, clock, rows, seconds)
    assert stream.getvalue().splitlines()[-1] == (
        f"h200: {rows} of 1000 rows, {said}, best 1.000 ms block1d bx=64"
    )


def test_the_rate_shows_a_change_of_problem_size():
    progress, stream, clock = plain(10_000, every_s=0)
    measure(progress, clock, 1000, 0.01)
    assert "1000 of 10000 rows, 100 rows/s, 1 min 30 s left" in stream.getvalue()
    measure(progress, clock, 30, 1)
    assert "1030 of 10000 rows, 1.0 rows/s, 2 h 30 min left" in stream.getvalue()
    # Rows slower than the window still have a rate, and soon it is theirs alone.
    measure(progress, clock, 12, 60)
    assert "1042 of 10000 rows, 0.017 rows/s, 149 h 18 min left" in stream.getvalue()


def test_rows_of_a_journal_count_as_done_and_not_in_the_rate():
    progress, stream, clock = plain(3000, every_s=0)
    clock.now += 50  # Before the block: of no rate.
    with progress:
        progress.skip(2000)
        measure(progress, clock, 2, 0.5)
        progress.skip(498)
        measure(progress, clock, 1, 0.5)
    lines = [line.partition(", best")[0] for line in stream.getvalue().splitlines()]
    assert lines == [
        "h200: 2001 of 3000 rows, time left unknown",
        "h200: 2002 of 3000 rows, 2.0 rows/s, 8 min 19 s left",
        "h200: 2501 of 3000 rows, 2.0 rows/s, 4 min 10 s left",
        "h200: 2501 of 3000 rows in 2 s, 2.0 rows/s",
    ]


def test_a_log_file_can_be_followed(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as stream, Progress(2, "h200", stream) as progress:
        progress.row("failed", None, "x")
        assert log.read_text() == "h200: 1 of 2 rows, time left unknown\n"


def best(stream):
    """What the newest line says of the best."""
    return stream.getvalue().splitlines()[-1].partition(", best ")[2]


def test_the_best_is_the_fastest_ok_row_of_the_problem_in_hand():
    progress, stream, _ = plain(100, every_s=0)
    progress.problem("n=64")
    progress.row("failed", None, "a")
    progress.row("wrong", 0.5, "b")
    progress.row("slow", 0.4, "c")
    progress.row("unverified", 0.3, "r")
    progress.row("ok", float("nan"), "d")
    assert best(stream) == ""
    progress.row("ok", 12.3456, "e")
    assert best(stream) == "12.35 ms e at n=64"
    progress.row("ok", 13.0, "f")
    assert best(stream) == "12.35 ms e at n=64"
    progress.row("ok", 0.0000123456, "g")
    assert best(stream) == "0.00001235 ms g at n=64"
    # A problem is announced again when its data are laid out anew.
    progress.problem("n=64")
    progress.row("failed", None, "h")
    assert best(stream) == "0.00001235 ms g at n=64"
    progress.problem("n=128")
    progress.row("failed", None, "i")
    assert best(stream) == ""
    progress.row("ok", 123456.7, "j [bold]")
    assert best(stream) == "123457 ms j [bold] at n=128"


def test_more_rows_than_were_expected_are_told_and_a_line_comes_once_a_period():
    progress, stream, clock = plain(3, every_s=2)
    with progress:
        progress.skip(4)
        measure(progress, clock, 9, 1)
    assert "-" not in stream.getvalue()
    counts = [
        re.match(r"h200: (\d+) of (\d+) rows", line) for line in stream.getvalue().splitlines()
    ]
    assert [tuple(map(int, each.groups())) for each in counts] == [
        (n, n) for n in (5, 7, 9, 11, 13, 13)
    ]


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, _):
        raise OSError(28, "No space left on device")


def test_a_stream_that_cannot_be_written_to_is_no_failure():
    with Progress(2, "h200", Full()) as progress:
        progress.row("ok", 1.0, "x")


class Terminal:
    """The other end of a pseudo-terminal: what was written to it, and what it shows."""

    def __init__(self):
        self.master, slave = os.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self.raw = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more.
            while chunk := os.read(self.master, 1 << 12):
                self.raw += chunk

    def close(self):
        """Close our end and read to the end."""
        if not self.stream.closed:
            self.stream.close()
            self._reader.join(10)
            os.close(self.master)

    @property
    def rows(self):
        """Rows of the screen, each as it was drawn last."""
        drawn = re.sub(r"\x1b\[(\?25[lh]|[\d;]*m)", "", self.raw.decode().replace("\r\n", "\n"))
        # A line that is ended and drawn again.
        drawn = re.sub(r"\n\r?\x1b\[1A", "", drawn)
        rows = [re.split(r"\r|\x1b\[2K", row)[-1] for row in drawn.split("\n")]
        assert "\x1b" not in "".join(rows), rows
        return rows


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 100 columns."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    opened = Terminal()
    yield opened
    opened.close()


def until(terminal, text):
    """Wait until ``text`` is on the screen; the line is drawn some times a second."""
    supervising.until(lambda: any(text in row for row in terminal.rows), text, seconds=10)


LONG = "block3d bx=64 by=4 bz=1 [red] of a name that is much longer than any terminal is wide"


def test_a_terminal_has_one_live_line_and_a_whole_last_one(terminal):
    clock = Clock()
    with Progress(3204, "h200", terminal.stream, clock, every_s=0) as progress:
        until(terminal, "h200: 0 of 3204 rows, time left unknown")
        progress.problem("n=512")
        for _ in range(340):
            clock.now += 1 / 41
            progress.row("ok", 0.10856, LONG)
        until(
            terminal, "h200: 340 of 3204 rows, 41 rows/s, 1 min 10 s left, best 0.1086 ms block3d"
        )
        assert len(terminal.rows) == 1
        assert len(terminal.rows[0]) <= 100
        assert terminal.rows[0].endswith("…")
        progress.skip(2864)
        until(terminal, "h200: 3204 of 3204 rows, 41 rows/s, 0 s left")
        assert len(terminal.rows) == 1
    terminal.close()
    last = f"h200: 3204 of 3204 rows in 8 s, 41 rows/s, best 0.1086 ms {LONG} at n=512"
    assert terminal.rows == [last, ""]
    # The cursor is back.
    assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l")


def test_a_terminal_is_left_in_order_after_an_error(terminal):
    progress = Progress(2, "h200", terminal.stream, Clock())
    threads = set(threading.enumerate())
    with pytest.raises(KeyError), progress:
        raise KeyError
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive()
    terminal.close()
    assert terminal.rows == ["h200: 0 of 2 rows in 0 s", ""]
    assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l")


def test_what_is_written_to_stderr_stands_above_the_live_line(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    stdout = sys.stdout
    with Progress(2, "h200") as progress:
        assert sys.stdout is stdout
        until(terminal, "0 of 2 rows")
        print("W something happened", file=sys.stderr)
        progress.row("ok", 1.0, "x")
        until(terminal, "1 of 2 rows")
        assert len(terminal.rows) == 2
        assert terminal.rows[0] == "W something happened"
    assert sys.stderr is terminal.stream


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_draw_gets_plain_lines(terminal, monkeypatch, name):
    monkeypatch.setenv("TERM", name)
    with Progress(2, "h200", terminal.stream, Clock()) as progress:
        progress.row("failed", None, "x")
    terminal.close()
    assert b"\x1b" not in terminal.raw
    assert terminal.rows == ["h200: 1 of 2 rows, time left unknown", "h200: 1 of 2 rows in 0 s", ""]


def test_a_log_gets_plain_lines_even_where_colours_are_forced(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    progress, stream, _ = plain(2)
    with progress:
        progress.row("failed", None, "x")
    assert "\x1b" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 2
