"""How fast requests may be sent to an endpoint, how long to wait before a retry, and the cost.

Nothing here waits or looks at a clock: each function takes the time as an argument, in seconds.

Why not tenacity and aiolimiter (judged by their published interfaces): aiolimiter's bucket takes an amount
when a request begins and never gives any back, while a token limit is reserved by an estimate and corrected
by what the endpoint counted; and a full bucket lets twice the limit through within its first window, where a
provider counts any minute. tenacity repeats a function on an exception; the wait here is from the failed
answer's own `Retry-After`, ends at once when another request finds the key wrong or the cost cap reached,
takes its place in the limit again, and what comes of the last attempt is a redacted reply and no exception.
With its `wait`, `stop`, `retry` and `sleep` all written by hand, the loop that is left to it is five lines.
A body that is torn or too large is the HTTP client's own.
"""

import email.utils
import math
import random
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from monitorbench.config.monitor import Prices

WINDOW_SECONDS = 60.0
FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 600.0
"""An endpoint that wants to be left alone for longer has run out of quota, not of breath."""


@dataclass(slots=True, eq=False)
class Reserved:
    """A request in the window: when it began (-inf once it has left), and with how many tokens."""

    at: float
    tokens: int


class RateLimit:
    """A sliding window: in any `WINDOW_SECONDS` at most so many requests and so many tokens begin.

    Tokens are reserved by an estimate and corrected by what the endpoint counted. A single request
    of more tokens than the limit goes out alone. Several threads may share it.
    """

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._most_requests = math.inf if requests is None else requests
        self._most_tokens = math.inf if tokens is None else tokens
        self._window: deque[Reserved] = deque()
        self._tokens = 0
        self._lock = threading.Lock()

    def reserve(self, tokens: int, now: float) -> Reserved | float:
        """The reservation, or the seconds to wait before trying again (more than 0)."""
        with self._lock:
            while self._window and now - self._window[0].at >= WINDOW_SECONDS:
                gone = self._window.popleft()
                self._tokens -= gone.tokens
                gone.at = -math.inf
            until, requests, in_window = now, len(self._window) + 1, self._tokens + tokens
            for oldest in self._window:
                if requests <= self._most_requests and in_window <= self._most_tokens:
                    break
                until, requests, in_window = (
                    oldest.at + WINDOW_SECONDS,
                    requests - 1,
                    in_window - oldest.tokens,
                )
            if until > now:
                return max(until - now, 1e-3)  # rounding must not make a caller spin
            self._window.append(reserved := Reserved(now, tokens))
            self._tokens += tokens
            return reserved

    def correct(self, reserved: Reserved, tokens: int) -> None:
        """Replace a reservation's estimate by the endpoint's own count."""
        with self._lock:
            if reserved.at > -math.inf:
                self._tokens += tokens - reserved.tokens
                reserved.tokens = tokens


def retry_delay(attempt: int, headers: Mapping[str, str], now: float) -> float:
    """Seconds before attempt number `attempt` (1 is the first retry) may be made.

    At least `retry_after`, plus exponential backoff with full jitter: uniform in [0, base · 2^(attempt-1)].
    """
    ceiling = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1))
    return retry_after(headers, now) + random.uniform(0, ceiling)


def retry_after(headers: Mapping[str, str], now: float) -> float:
    """Seconds that a response asks to be left alone for, 0 where it doesn't say.

    `Retry-After` is a number of seconds, or an HTTP date to compare with the UNIX time `now` (RFC 9110,
    section 10.2.3).
    """
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except (ValueError, OverflowError):
            return 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def cost(prices: Prices | None, prompt: int, cached: int, completion: int) -> float:
    """Cost of a reply in the prices' currency; 0 without prices. `prompt` includes `cached`."""
    if prices is None:
        return 0.0
    cached_price = prices.prompt if prices.cached_prompt is None else prices.cached_prompt
    return ((prompt - cached) * prices.prompt + cached * cached_price + completion * prices.completion) / 1e6


def estimated_tokens(characters: int) -> int:
    """Tokens of a text before anybody has counted them: one for three characters, on the safe side."""
    return 1 + characters // 3


_until: ContextVar[float | None] = ContextVar("given_up_at", default=None)


@contextmanager
def given_up_at(until: float) -> Iterator[None]:
    """Nobody waits any more from `until` on, a time on `time.monotonic`, for what the body asks."""
    before = _until.set(until)
    try:
        yield
    finally:
        _until.reset(before)


def waited_until() -> float | None:
    """Time until which the caller waits; None where nobody set one."""
    return _until.get()
