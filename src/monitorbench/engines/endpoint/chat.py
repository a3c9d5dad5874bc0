"""`engine=openai`: many requests to one OpenAI-compatible endpoint, each answered or accounted for.

Retries, limits and costs are ours, so that they are the same for every provider. The key is read from the
environment, kept from every text that leaves here.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from queue import SimpleQueue
from typing import Any

import httpx2

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import (
    RateLimit,
    Reserved,
    estimated_tokens,
    retry_delay,
    waited_until,
)
from monitorbench.engines.endpoint.non_chat import (
    completion_fields,
    moderation_input,
    read_completion,
    read_moderation,
)
from monitorbench.engines.endpoint.reply import failed, one_line, read_reply
from monitorbench.engines.endpoint.wire import (
    BoundedBody,
    Problem,
    chat_fields,
    client_settings,
    most_bytes,
    outcome_of,
    problem_of,
    redacted_reply,
)
from monitorbench.engines.protocol import Decoding, Model, Reply, Request


class CostLimit(UserError):
    """`max_cost` is spent. All that was paid for has been yielded; the remaining requests were never sent."""


class Endpoint(Model):
    """A chat endpoint, or with a `tokenizer` one that is sent token ids.

    Several threads may ask it at once: limits and costs are shared, `concurrency` is each call's own.
    `spent` is what earlier processes paid of this run's `max_cost`. Raises `UserError` where the
    environment variable with the key isn't set.
    """

    def __init__(self, config: OpenAiEngine, *, spent: float = 0.0, tokenizer: Any = None) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.key = config.api_key()
        self.spent = spent
        self.limit = RateLimit(config.requests_per_minute, config.tokens_per_minute)
        self._rounds: set[_Round] = set()
        self._paying = threading.Lock()
        # Its line for every request would bury the progress of thousands.
        logging.getLogger("httpx2").setLevel(logging.WARNING)

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`; replies are yielded as they come in.

        Closing the iterator cancels what is in flight. What is not answered by the time that
        `engines.endpoint.limits` has for the caller has failed (`timed_out`), and is not asked again.

        Raises:
            CostLimit: after the last reply, when `max_cost` is spent and requests are left.
            UserError: after the last reply, when the endpoint can't be used: a wrong key, no such model,
                nothing listening, no quota, or a redirect.

        """
        if not requests:
            return
        round_ = _Round(self, requests, self._fields(decoding), decoding)
        self._rounds.add(round_)
        try:
            yield from round_.results()
        finally:
            round_.cancel()
            self._rounds.discard(round_)

    def close(self) -> None:
        """Cancel whatever is still in flight."""
        for round_ in tuple(self._rounds):
            round_.cancel()

    def pay(self, cost: float) -> None:
        """Note what a reply cost."""
        with self._paying:
            self.spent += cost

    def _fields(self, decoding: Decoding) -> dict[str, Any]:
        """Fields that all requests of a round have in common."""
        if self.config.api == "moderations":
            return {"model": self.config.model} | self.config.extra_body
        if self.config.by_token_ids:
            return completion_fields(self.config.model, decoding)
        return chat_fields(self.config, decoding) | self.config.extra_body


class _Round:
    """The requests of one call of `answers`: an event loop in a thread of its own, and a queue out of it.

    In the caller's thread the loop would stand still, and time-outs run, while a reply is dealt with.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        requests: Sequence[Request],
        fields: dict[str, Any],
        decoding: Decoding,
    ) -> None:
        self._endpoint = endpoint
        self._config = endpoint.config
        self._requests = requests
        self._fields = fields
        self._decoding = decoding
        self._pending = iter(range(len(requests)))
        self._queue: SimpleQueue[tuple[int, Reply] | BaseException | None] = SimpleQueue()
        self._over_cost = False
        self._hopeless = ""
        self._until = waited_until()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._turns = asyncio.Lock()
        self._main = self._loop.create_task(self._ask_all())
        self._thread = threading.Thread(target=self._serve, name="endpoint", daemon=True)
        self._thread.start()

    def results(self) -> Iterator[tuple[int, Reply]]:
        """Yield replies until nothing is in flight; then raise the error that ended the round early."""
        n_left = len(self._requests)
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            n_left -= 1
            yield item
        config = self._config
        if self._hopeless:
            key = f"key in {config.api_key_env}" if config.api_key_env else "key: none (api_key_env=null)"
            raise UserError(
                f"{config.base_url}, model {config.model}, {key}: {one_line(self._hopeless)}; "
                f"{n_left} requests not answered"
            )
        if self._over_cost:
            raise CostLimit(
                f"max_cost={config.max_cost:g} is spent ({self._endpoint.spent:.6g}), {n_left} requests not "
                "asked: raise engine.max_cost and run again to resume"
            )
        if n_left:
            raise RuntimeError("the endpoint was closed while it was being asked")

    def cancel(self) -> None:
        """Drop what is in flight, close its connections, end the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is left to cancel
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # raised again where the results are read
            self._queue.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            self._queue.put(None)

    async def _ask_all(self) -> None:
        key = self._endpoint.key
        settings = client_settings(self._config, {"authorization": f"Bearer {key}"} if key else {})
        async with httpx2.AsyncClient(**settings) as client, asyncio.TaskGroup() as group:
            for _ in range(min(self._config.concurrency, len(self._requests))):
                group.create_task(self._work(client))

    @cached_property
    def _most_bytes(self) -> int:
        alternatives = self._config.top_logprobs + 1 if self._config.logprobs else 0
        if self._config.by_token_ids:
            alternatives = len(self._decoding.scored_token_ids) + 1
        return most_bytes(self._decoding.max_new_tokens, alternatives)

    async def _work(self, client: httpx2.AsyncClient) -> None:
        """Answer one request after the other, until none is left or the round is to end."""
        for index in self._pending:
            reply = await self._answer(client, self._requests[index])
            if reply is None:
                return
            self._queue.put((index, redacted_reply(reply, self._endpoint.key)))

    async def _answer(self, client: httpx2.AsyncClient, request: Request) -> Reply | None:
        """The reply to one request while somebody waits for it; None where the round ended before."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout_at(self._until):  # the loop's clock is `time.monotonic`
                return await self._asked(client, request)
        except TimeoutError:
            return failed("timed_out", "no answer while it was waited for", time.perf_counter() - began)

    async def _asked(self, client: httpx2.AsyncClient, request: Request) -> Reply | None:
        """The reply after all waits and retries; None where the round ended before there was one."""
        prompt_tokens = len(request.token_ids) or estimated_tokens(request.characters)
        tokens = prompt_tokens + self._decoding.max_new_tokens
        config, began, retries = self._config, time.perf_counter(), 0
        while (reserved := await self._turn(tokens)) is not None:
            outcome = await self._attempt(client, request)
            seconds = time.perf_counter() - began
            if not isinstance(outcome, Problem):
                reply = self._read()(outcome, config, self._decoding, request, seconds)
                if reply.prompt_tokens:
                    self._endpoint.limit.correct(reserved, reply.prompt_tokens + reply.completion_tokens)
                self._endpoint.pay(reply.cost)
                if reply.finish_reason != "abort":
                    return reply
                outcome = Problem("bad_response", "aborted: is it ending?", retry=True, ends_run=True)
            retries += 1
            if outcome.retry and retries <= config.max_retries:
                if await self._stops_within(retry_delay(retries, outcome.headers, time.time())):
                    return None
            elif outcome.ends_run:
                self._hopeless = self._hopeless or outcome.detail
                self._stopped.set()
                return None
            else:
                return failed(outcome.failure, outcome.detail, seconds)
        return None

    def _read(self) -> Callable[[bytes, OpenAiEngine, Decoding, Request, float], Reply]:
        """The reader of what this endpoint answers."""
        if self._config.api == "moderations":
            return read_moderation
        return read_completion if self._config.by_token_ids else read_reply

    async def _attempt(self, client: httpx2.AsyncClient, request: Request) -> bytes | Problem:
        """Ask once: the body of an answer, or what came instead."""
        config = self._config
        prompt: dict[str, Any] = {"messages": [turn._asdict() for turn in request.messages]}
        path = "chat/completions"
        if request.token_ids:
            prompt, path = {"prompt": list(request.token_ids)}, "completions"
        elif config.api == "moderations":
            prompt, path = moderation_input(request), config.api
        url = f"{config.base_url.rstrip('/')}/{path}"
        try:
            # The client's own time-out is for each read: a byte a second would keep it waiting for ever.
            async with (
                asyncio.timeout(config.timeout_seconds),
                client.stream("POST", url, json=prompt | self._fields) as response,
            ):
                body = BoundedBody(response, self._most_bytes)
                async for chunk in response.aiter_raw():
                    body.add(chunk)
                return outcome_of(response, body.whole(), config, self._endpoint.key)
        except Exception as error:
            return problem_of(error, config.timeout_seconds)

    async def _turn(self, tokens: int) -> Reserved | None:
        """Wait until one more attempt may be made, first come, first served; None where none is to be."""
        async with self._turns:
            while not self._stopped.is_set():
                if self._config.max_cost is not None and self._endpoint.spent >= self._config.max_cost:
                    self._over_cost = True
                    self._stopped.set()
                    break
                reserved = self._endpoint.limit.reserve(tokens, self._loop.time())
                if isinstance(reserved, Reserved):
                    return reserved
                await self._stops_within(reserved)
        return None

    async def _stops_within(self, seconds: float) -> bool:
        """Sleep; True as soon as the round is to end."""
        try:
            async with asyncio.timeout(seconds):
                return await self._stopped.wait()
        except TimeoutError:
            return False
