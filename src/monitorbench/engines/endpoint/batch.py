"""`engine.batch`: requests handed in together, their answers fetched when the provider has them.

A `Model` like a chat endpoint, at another price and pace. What was handed in is in the run's directory
(`batches.json`), so that a process that was killed goes on waiting for the same batch and none is handed in
twice: a batch is written down before it is handed in, and again with its name there. A process that was
killed in between leaves one without a name, which the next one looks for at the provider first. What a batch
may cost is reserved before it is handed in, since it can't be stopped at `max_cost`.
"""

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from monitorbench import strict_json
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.batch_calls import BatchRecord, BatchState, BatchWire, UnknownFate
from monitorbench.engines.endpoint.batch_formats import BatchOutcome, format_of
from monitorbench.engines.endpoint.chat import CostLimit
from monitorbench.engines.endpoint.limits import cost, estimated_tokens, retry_delay
from monitorbench.engines.endpoint.reply import failed, one_line, read_reply
from monitorbench.engines.endpoint.wire import most_bytes, redacted, redacted_reply
from monitorbench.engines.protocol import Decoding, Model, Reply, Request

_log = logging.getLogger(__name__)


class BatchEndpoint(Model):
    """A provider's batch API. `folder` is the run's directory; `spent` what it paid before.

    Raises `UserError` where the environment variable with the key isn't set, or the file of batches can't be
    read.
    """

    def __init__(self, config: OpenAiEngine, folder: Path, *, spent: float = 0.0) -> None:
        assert config.batch is not None
        self._config, self._api, self._batch = config, format_of(config), config.batch
        self._prices = config.paid_prices
        self._key, self.spent = config.api_key(), spent
        self._wire = BatchWire(config, self._key, self._api.headers(self._key))
        self._state = BatchState(folder)
        self._said: dict[str, str] = {}
        logging.getLogger("httpx2").setLevel(logging.WARNING)

    def close(self) -> None:
        """Close the connections; what was handed in stays so."""
        self._wire.close()

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`; a request's `key` is its `custom_id`. What failed comes after what did not.

        Raises:
            CostLimit: after the last reply, when a batch of what is left could cost more than `max_cost`.
            UserError: where the API can't be used, or refuses a batch.

        """
        by_key = {request.key: request for request in requests}
        index = {request.key: number for number, request in enumerate(requests)}
        if "" in by_key or len(by_key) < len(requests):
            raise ConfigError("engine.batch: requests without keys of their own; expected engine.batch=null")
        answered: set[str] = set()
        unclear = 0
        while True:
            try:
                self._settle()
                n_left = self._submit(by_key, answered, decoding)
                unclear = 0
            except UnknownFate as error:
                unclear += 1
                if unclear > self._config.max_retries:
                    raise UserError(
                        f"{self._config.base_url}: not known whether a batch was taken ({error}); the same "
                        "command looks for it first"
                    ) from None
                time.sleep(retry_delay(unclear, {}, time.time()))
                continue
            if not self._state.those("open"):
                break
            for batch in self._state.those("open"):
                for key, reply in self._collected(batch, by_key, decoding):
                    answered.add(key)
                    yield index[key], reply
            if self._state.those("open"):
                time.sleep(self._batch.poll_seconds)
        if n_left:
            raise CostLimit(
                f"max_cost={self._config.max_cost:g}: {self.spent:.6g} is spent, and {n_left} requests could "
                "cost more than is left of it: raise engine.max_cost and run again to resume"
            )

    def _settle(self) -> None:
        """Look for the batches of which it isn't known whether they were handed in."""
        for batch in self._state.those("submitting"):
            known_ids = frozenset(record.id for record in self._state.batches if record.id)
            batch.id = self._api.find(self._wire, batch, known_ids)
            if batch.id is None:
                self._state.batches.remove(batch)
            else:
                batch.state = "open"
                _log.info("batch %s: found again", batch.id)
            self._state.save()

    def _submit(self, asked: Mapping[str, Request], answered: set[str], decoding: Decoding) -> int:
        """Hand in what is in no batch, as far as `max_cost` allows; how many are left."""
        handed_in = {key for batch in self._state.those("open") for key in batch.keys} | answered
        waiting = [request for key, request in asked.items() if key not in handed_in]
        most = self._batch.most_requests or self._api.most_requests
        room = int((self._batch.most_megabytes or self._api.most_megabytes) * 1e6) - 100
        while waiting:
            lines: list[bytes] = []
            size, most_cost = 0, 0.0
            for request in waiting[:most]:
                item = self._api.item(self._config, request, decoding)
                line = json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
                more = self._most_cost(request, decoding)
                if lines and size + len(line) + 2 > room:
                    break
                if self._is_too_much(most_cost + more):
                    break
                lines.append(line)
                size, most_cost = size + len(line) + 2, most_cost + more
            if not lines:
                return len(waiting)
            keys = [request.key for request in waiting[: len(lines)]]
            nonce = uuid.uuid4().hex
            batch = BatchRecord(nonce=nonce, keys=keys, submitted=time.time(), most_cost=most_cost)
            self._state.batches.append(batch)
            self._state.save()
            try:
                batch.id = self._api.submit(self._wire, lines, nonce)
            except UserError:  # refused: there is no such batch
                self._state.batches.remove(batch)
                self._state.save()
                raise
            except KeyError as error:
                raise UnknownFate(f"an answer without {error}") from error
            batch.state = "open"
            self._state.save()
            _log.info("batch %s: %d requests handed in", batch.id, len(lines))
            waiting = waiting[len(lines) :]
        return 0

    def _is_too_much(self, more: float) -> bool:
        most = self._config.max_cost
        return most is not None and self.spent + self._state.reserved + more > most

    def _most_cost(self, request: Request, decoding: Decoding) -> float:
        tokens = estimated_tokens(request.characters)
        return cost(self._prices, tokens, 0, decoding.max_new_tokens)

    def _collected(
        self, batch: BatchRecord, asked: Mapping[str, Request], decoding: Decoding
    ) -> Iterator[tuple[str, Reply]]:
        """Replies of a batch that has ended to what is asked; nothing before."""
        assert batch.id is not None
        status = self._api.status(self._wire, batch.id)
        if status.said != self._said.get(batch.id):
            self._said[batch.id] = status.said
            _log.info("batch %s: %s", batch.id, one_line(status.said))
        if not status.ended:
            return
        if status.failed:
            self._set(batch, "collected")
            raise UserError(
                f"{self._config.base_url}: batch {batch.id} failed: "
                f"{one_line(redacted(status.failed, self._key))}; the same command hands in another one"
            )
        alternatives = self._config.top_logprobs + 1 if self._config.logprobs else 0
        most = most_bytes(decoding.max_new_tokens, alternatives)
        outcomes: dict[str, BatchOutcome] = {}
        n_lines = 0
        for url in status.results:
            for line in self._wire.lines(url, most, len(batch.keys)):
                n_lines += 1
                self._note(line, outcomes)
        ours = outcomes.keys() & set(batch.keys)
        if outcomes and not ours:
            _log.warning("batch %s is somebody else's: looking for ours again", batch.id)
            again = BatchRecord(**(batch.model_dump() | {"id": None, "state": "submitting"}))
            batch.keys, batch.most_cost = [], 0.0
            self._state.batches.append(again)
            self._set(batch, "foreign")
            return
        if n_lines != len(ours):
            _log.warning("batch %s: %d lines for %d requests", batch.id, n_lines, len(batch.keys))
        yield from self._read(batch, outcomes, asked, decoding)

    def _note(self, line: bytes, found: dict[str, BatchOutcome]) -> None:
        """Read a line of results; what is torn says nothing, and two that differ are no answer."""
        try:
            outcome = self._api.outcome(strict_json.loads(line, of_python=True))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        before = found.setdefault(outcome.key, outcome)
        if before != outcome:
            found[outcome.key] = BatchOutcome(outcome.key, None, "bad_response", "two lines that differ")

    def _read(
        self,
        batch: BatchRecord,
        found: Mapping[str, BatchOutcome],
        asked: Mapping[str, Request],
        decoding: Decoding,
    ) -> Iterator[tuple[str, Reply]]:
        """The answers; then, with the batch done with, what failed, to be asked again another time."""
        seconds = time.time() - batch.submitted
        lost: list[tuple[str, Reply]] = []
        for key in batch.keys:
            outcome = found.get(key) or BatchOutcome(
                key, None, "bad_response", "no line in the batch's results"
            )
            if key not in asked:
                continue
            if outcome.body is None:
                detail = redacted(outcome.detail, self._key)
                lost.append((key, failed(outcome.failure, detail, seconds)))
                continue
            reply = read_reply(outcome.body, self._config, decoding, asked[key], seconds)
            self.spent += reply.cost
            reply = redacted_reply(reply, self._key)
            if reply.failure is None:
                yield key, reply
            else:
                lost.append((key, reply))
        self._set(batch, "collected")
        yield from lost

    def _set(self, batch: BatchRecord, state: str) -> None:
        batch.state = state  # type: ignore[assignment]
        self._state.save()
