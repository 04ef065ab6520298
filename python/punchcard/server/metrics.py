"""What a server tells Prometheus."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from punchcard.server.scheduler import Job, Pass, Scheduler, Update

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_STEP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"punchcard_{name}", help, labels, registry=self.registry)

        def histogram(name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"punchcard_{name}", help, labels, registry=self.registry, buckets=buckets)

        self.requests = counter("requests", "Requests by path and status", "path", "status")
        self.request_seconds = histogram("request_seconds", "From arrival to the last byte", _SECONDS, "path")
        self.first_token_seconds = histogram("first_token_seconds", "From arrival to the first token", _SECONDS)
        self.queue_seconds = histogram("queue_seconds", "From the queue to a slot", _SECONDS)
        self.prepare_seconds = histogram("prepare_seconds", "Rendering prompts and compiling grammars", _SECONDS)
        self.step_seconds = histogram("step_seconds", "One step of all running requests", _STEP_SECONDS)
        self.step_requests = histogram("step_requests", "Requests in one step", (1, 2, 4, 8, 16, 32, 64))
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts")
        self.cached_tokens = counter("cached_tokens", "Tokens of prompts that were not computed again")
        self.tokens = counter("generated_tokens", "Tokens of answers")
        self.forced_tokens = counter("forced_tokens", "Tokens of answers that the grammar left no choice about")
        self.answers = counter("answers", "Answers by how they ended", "finish")
        self._running = Gauge("punchcard_running", "Answers being written", registry=self.registry)
        self._waiting = Gauge("punchcard_waiting", "Answers waiting for a slot", registry=self.registry)
        self._slots = Gauge("punchcard_slots", "Answers that can be written at once", registry=self.registry)

    def step(self, done: Pass) -> None:
        self.step_seconds.observe(done.seconds)
        self.step_requests.observe(done.requests)

    def start(self, job: Job) -> None:
        self.queue_seconds.observe(time.monotonic() - job.submitted)
        self.prompt_tokens.inc(len(job.prompt))
        self.cached_tokens.inc(job.cached_tokens)

    def end(self, job: Job, update: Update) -> None:
        self.tokens.inc(job.writer.tokens)
        self.forced_tokens.inc(job.writer.forced_tokens)
        ended = "cancelled" if job.cancelled else update.finish or "error"
        self.answers.labels(ended).inc()

    def text(self, scheduler: Scheduler) -> bytes:
        """All metrics in Prometheus's text format."""
        state = scheduler.state
        self._running.set(state.running)
        self._waiting.set(state.waiting)
        self._slots.set(state.slots)
        return generate_latest(self.registry)
