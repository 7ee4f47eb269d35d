"""Episodes of verifiers' own environment, with a model that a script plays, offline."""

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.adapters.conftest import ANSWER, PROBLEM

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed: pip install 'kernel-assay[verifiers]'")

from harness.adapters import verifiers as adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(BaseHTTPRequestHandler):
    """Answers by how often it was asked in the conversation: the words of its class, the last one again and again."""

    words = ("wrong",)
    asked: ClassVar = []

    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        self.asked.append(messages)
        turn = sum(message["role"] == "assistant" for message in messages)
        text = ANSWER.format(self.words[min(turn, len(self.words) - 1)])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        reply["usage"] = usage
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def episode(told, monkeypatch):
    """An episode of an environment whose model says these words."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(adapter, "_evaluator", lambda config: told)
    monkeypatch.setenv("NO_KEY", "none")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def run(*words, **options):
        Model.words, Model.asked = words, []

        async def one():
            config = adapter.KernelEnvConfig(
                taskset=adapter.KernelTasksetConfig(id="scripted-kernels", problems=[PROBLEM]),
                agent={"harness": {"id": "scripted-kernels"}, "runtime": {"type": "subprocess"}},
                **options,
            )
            client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}", api_key_var="NO_KEY")
            env = vf.load_environment(config)
            async with env.serving():
                (task,) = env.taskset
                (slot,) = env.slots(task)
                return await env.run_slot(slot, vf.ModelContext(model="m", client=client))

        return asyncio.run(one())

    yield run
    server.shutdown()
    sys.modules.pop("scripted_kernels", None)


def test_a_model_reads_the_feedback_of_each_turn_and_the_last_answer_is_paid(episode, told):
    done = episode("wrong", "slow", "fast", turns=5)
    assert done.ok, done.errors or done.traces[0].last_error
    (trace,) = done.traces
    assert trace.reward == 2.0
    assert trace.metrics["correct"] == 1.0
    assert [seen[1] for seen in told.seen] == ["wrong", "slow", "fast"]
    first, second, third = Model.asked
    assert "class Model: pass" in first[0]["content"]
    assert second[-1]["role"] == "user"
    assert "incorrect" in second[-1]["content"].lower()
    assert len(third) == 5


def test_an_episode_has_so_many_turns(episode):
    assert episode("slow", turns=2).traces[0].reward == 0.5
    assert len(Model.asked) == 2


def test_where_the_harness_failed_there_is_no_reward_and_the_rollout_is_tried_again(episode, told):
    done = episode("lost", turns=1)
    assert not done.ok
    assert "HarnessFailed" in done.traces[0].last_error.message
    told.found["lost"] = [told.found["lost"]] * 6
    told.found["lost"][5:] = [told.found["fast"]] * 3
    again = episode("lost", turns=1, retries={"rules": [{"message": "HarnessFailed", "max_retries": 3}]})
    assert again.ok
    assert again.traces[0].reward == 2.0
