"""What the result of a request depends on: the problems of a service, and a digest by which results are kept."""

from __future__ import annotations

import hashlib

import msgspec

from harness.api import Config
from harness.catalog import problems, sources
from harness.catalog.problems import Problem
from harness.errors import nearest
from harness.reading.reading import Reader
from harness.records import PROTOCOL_VERSION
from harness.serve.requests import BadRequest, EvaluateRequest


class Contents:
    """The problems that a config selects, by id; and by source, where that is allowed."""

    def __init__(self, config: Config, surroundings: dict[str, str], allow_source: bool) -> None:
        self._allow_source = allow_source
        with Reader() as reader:
            found = problems.discover(config.problems, reader)
        defined = config.define_variants
        self._problems = {problem.id: problems.with_variants(problem, defined) for problem in found}
        conditions = {
            "protocol": PROTOCOL_VERSION,
            "config": config,
            "surroundings": surroundings,
        }
        self._conditions = msgspec.json.encode(conditions, order="deterministic")

    def problem(self, identity: str) -> Problem:
        """The problem of that id. Raises BadRequest."""
        if identity not in self._problems:
            raise BadRequest(404, f"no problem '{identity}' here; {nearest(identity, self._problems)}")
        return self._problems[identity]

    def digest(self, request: EvaluateRequest) -> str:
        """A digest (64 hex digits) of all that a result depends on. Raises BadRequest for a problem that there is not.

        A problem's file is read anew, because it may have been edited.
        """
        whole = hashlib.sha256(hashlib.sha256(self._conditions).digest())
        problem = self._of_problem(request)
        for part in (problem, request.variant, request.precision, request.name, request.candidate):
            whole.update(hashlib.sha256(part.encode()).digest())
        return whole.hexdigest()

    def _of_problem(self, request: EvaluateRequest) -> str:
        if request.precision not in (*problems.PRECISIONS, "default"):
            valid = nearest(request.precision, (*problems.PRECISIONS, "default"))
            raise BadRequest(400, f"no precision '{request.precision}'; {valid}")
        if request.problem_source:
            if not self._allow_source:
                raise BadRequest(403, "this service takes problems by id only: their source is trusted code")
            return f"source {request.problem_source}"
        problem = self.problem(request.problem)
        if not problems.has_variant(problem, request.variant):
            valid = nearest(request.variant, problems.variant_names(problem))
            raise BadRequest(400, f"no variant '{request.variant}'; {valid}")
        try:
            return f"{problem.id} {sources.digest(problem.path, sources.load(problem.path))}"
        except sources.LoadFault as fault:
            raise BadRequest(503, f"problem {problem.id}: {fault}") from fault
