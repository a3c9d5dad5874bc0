"""What is seen of a training while it runs: one line of 80 columns, or plain lines."""

import io
import logging

import pytest
from rich.console import Console

from monitorbench.runs import progress as shown_progress
from monitorbench.training.curve import (
    TrainingCourse,
    TrainingNumbers,
    shown,
    summary,
    training_display,
)


def test_time_left_has_steps_and_validations():
    """If it failed: a training whose validations take longer than its steps would never end when it said."""
    course = TrainingCourse(100, 0, 10)
    course.validated(0, 0.5, 30.0)
    for step in range(1, 21):
        assert (course.numbers().seconds_left is None) is (step <= 5), "said too early, or too late"
        course.step(1 / step, 200, 2.0 if step != 7 else 90.0)  # one slow step, of another user's job
        if step % 10 == 0:
            course.validated(step, 0.5 + step / 100, 30.0)
    numbers = course.numbers()
    assert numbers.seconds_left == pytest.approx(80 * 2 + 8 * 30)
    assert numbers.tokens_per_second == pytest.approx(20 * 200 / (19 * 2 + 90))
    assert numbers.loss == pytest.approx(sum(1 / step for step in range(11, 21)) / 10)
    assert (numbers.auroc, numbers.validated_at) == (0.7, 20)


def test_the_last_validation_is_waited_for():
    """If it failed: `done` for minutes, while the validation split is judged."""
    course = TrainingCourse(25, 20, 10)
    course.validated(20, 0.6, 8.0)
    for _ in range(5):
        course.step(0.5, 100, 2.0)
    assert course.numbers().seconds_left == 8.0
    course.validated(25, 0.6, 8.0)
    assert course.numbers().seconds_left == 0.0


def test_a_resumed_training_has_no_speed_of_before():
    """If it failed: 900 steps in no time, and an end in a second."""
    course = TrainingCourse(1000, 900, 50)
    for _ in range(4):
        course.step(0.5, 100, 3.0)
    assert course.numbers().seconds_left is None
    course.step(0.5, 100, 3.0)
    assert course.numbers().seconds_left == pytest.approx(95 * 3.0)


@pytest.mark.parametrize(
    "numbers",
    [
        TrainingNumbers(0, 12, None, None, None, None, None, None, 0.0),
        TrainingNumbers(7, 12, 1.42, 1.9, 0.531, 5, 204.3, 42.0, 50.0),
        TrainingNumbers(120000, 120000, 12.345, 13.0, 1.0, 119500, 123456.7, 35999.0, 1.0),
    ],
)
def test_a_line_fits_a_terminal(numbers: TrainingNumbers):
    """If it failed: the time left would fall off the end of an 80-column terminal first."""
    line = " ".join(shown(numbers))
    assert len(line) <= 78
    assert line.isascii()
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    bar = shown_progress.numbers_bar(lambda: shown(numbers), numbers.total, numbers.done, console)
    console.print(bar.get_renderable())
    (drawn,) = out.getvalue().splitlines()
    assert drawn.endswith(line)
    assert len(drawn) <= 80


def test_plain_lines_without_a_terminal(monkeypatch, caplog, capfd):
    """If it failed: a cluster's log of control characters, or one line for each of 100,000 steps."""
    now = [100.0]
    monkeypatch.setattr(shown_progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(TrainingCourse.__init__, "__kwdefaults__", {"clock": lambda: now[0]})
    caplog.set_level(logging.INFO, "monitorbench")
    with training_display("train on all", 20, 0, 20) as display:
        for _ in range(20):
            now[0] += 2
            display.step(0.5, 400, 2.0)
    assert caplog.messages == [
        "train on all: step 8/20, loss 0.500, AUROC -, 200 tokens/s, ETA 0:00:24",
        "train on all: step 16/20, loss 0.500, AUROC -, 200 tokens/s, ETA 0:00:08",
        "train on all: step 20/20, loss 0.500, AUROC -, 200 tokens/s, ETA 0:00:01",
    ]
    assert "".join(capfd.readouterr()) == ""


def test_the_summary_says_what_came_of_it():
    """If it failed: one would look into learning_curve.json after each training."""
    points = [
        {"step": 0, "loss": None, "auroc": 0.5},
        {"step": 15, "loss": 0.7, "auroc": 0.82},
        {"step": 30, "loss": 0.4, "auroc": 0.78},
    ]
    numbers = TrainingNumbers(30, 30, 0.4, 0.9, 0.78, 30, 1234.5, 0.0, 130.0)
    assert summary(points, numbers) == (
        "30 steps, 0:02:10; loss 0.700 -> 0.400; AUROC on validation 0.500 -> 0.780; best 0.820 at step 15; "
        "1,234 tokens/s"
    )
    assert summary(points[:1], numbers._replace(done=0, tokens_per_second=None)) == "0 steps, 0:02:10"
    assert "; loss 0.900 -> 0.700; " in summary(points[:2], numbers)  # not 0.700 -> 0.700
    assert "; loss 0.700; " in summary(points[:2], numbers._replace(done=1, total=1))


def test_lines_of_the_log_go_above_the_bar(monkeypatch):
    """If it failed: `train: step 5: …` would be written behind the bar, and half of it overwritten."""
    screen = io.StringIO()
    monkeypatch.setattr(shown_progress.sys, "stderr", screen)
    handler = logging.StreamHandler(screen)
    logging.getLogger().addHandler(handler)
    try:
        console = Console(file=screen, width=80, force_terminal=True, color_system=None)
        bar = shown_progress.numbers_bar(lambda: ["step"], 5, 0, console)
        with shown_progress.on_screen(bar):
            logging.getLogger("monitorbench").warning("a line [b]of its own[/b]")
        assert handler.stream is screen
    finally:
        logging.getLogger().removeHandler(handler)
    lines = screen.getvalue().replace("\x1b[2K", "").replace("\r", "\n").splitlines()
    assert "a line [b]of its own[/b]" in lines
