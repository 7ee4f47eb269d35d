"""OpenEnv's own server, and sessions side by side."""

import asyncio

import pytest

from harness.errors import UsageError
from tests.adapters.conftest import ANSWER, PROBLEM

pytest.importorskip("openenv.core", reason="OpenEnv is not installed: pip install 'kernel-assay[openenv]'")

from openenv.core.env_server.http_server import create_app, create_fastapi_app
from starlette.testclient import TestClient

from harness.adapters.openenv import KernelAction, KernelEnvironment, KernelObservation

pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_episode_ends_when_an_answer_is_faster_for_sure_or_no_turn_is_left(told):
    env = KernelEnvironment(told, [PROBLEM, "attention/sdpa"], turns=3, deadline_s=9.0)
    first = env.reset(episode_id="one")
    assert "class Model: pass" in first.text
    seen = [env.step(KernelAction(answer=ANSWER.format(word))) for word in ("wrong", "lost", "slow")]
    assert [(one.reward, one.done) for one in seen] == [(0.0, False), (None, False), (0.5, False)]
    assert env.state.episode_id == "one"
    # What the harness failed at is no turn.
    assert env.state.step_count == 2
    last = asyncio.run(env.step_async(KernelAction(answer="I give up")))
    assert (last.reward, last.done, last.status) == (0.0, True, "no_candidate")
    with pytest.raises(UsageError, match="is done"):
        env.step(KernelAction(answer=ANSWER.format("fast")))
    assert env.reset().problem == "attention/sdpa"
    sure = env.step(KernelAction(answer=ANSWER.format("fast")))
    assert (sure.reward, sure.done, sure.figures["correct"]) == (2.0, True, 1.0)
    assert {seen[2] for seen in told.seen} == {9.0}
    with pytest.raises(UsageError, match="there is no problem"):
        env.reset(problem="no/such")


@pytest.mark.parametrize("kind", ["text", "path", "id"])
def test_a_client_names_none_but_the_environment_s_problems(told, kind, tmp_path):
    """The judge runs a problem's text unconfined, and a prompt quotes its file."""
    file = tmp_path / "secret.py"
    file.write_text("TOKEN = 1")
    named = {"text": "import os\nos.system('id')\n", "path": str(file), "id": "elementwise/gelu"}[kind]
    env = KernelEnvironment(told, [PROBLEM, "attention/sdpa"])
    env.reset(problem=PROBLEM)
    with pytest.raises(UsageError, match="among those of this environment"):
        env.reset(problem=named)
    env.step(KernelAction(answer=ANSWER.format("fast")))
    assert [seen[0] for seen in told.seen] == [PROBLEM]


OTHER = "class Model: other\n"


@pytest.fixture
def http(told):
    """OpenEnv's own routes of HTTP, which make an environment for each request."""

    def client(*problems):
        app = create_app(lambda: KernelEnvironment(told, problems), KernelAction, KernelObservation)
        return TestClient(app)

    return client


def test_over_http_an_answer_is_to_the_problem_that_it_names_and_no_other(told, http):
    client, answer = http(PROBLEM, OTHER), ANSWER.format("fast")
    assert [client.post("/reset").json()["observation"]["problem"] for _ in range(3)] == [PROBLEM, OTHER, PROBLEM]
    named = client.post("/reset", json={"problem": OTHER}).json()["observation"]["problem"]
    assert client.post("/step", json={"action": {"answer": answer, "problem": named}}).json()["reward"] == 2.0
    assert [seen[0] for seen in told.seen] == [OTHER]
    for action, why in (({}, "no episode"), ({"problem": "no/such"}, "no problem 'no/such'")):
        refused = client.post("/step", json={"action": {"answer": answer} | action})
        assert (refused.status_code, why in refused.json()["detail"]) == (400, True)
    assert len(told.seen) == 1


def test_an_environment_of_one_problem_needs_no_name_for_it(told, http):
    assert http(OTHER).post("/step", json={"action": {"answer": ANSWER.format("fast")}}).json()["reward"] == 2.0
    assert [seen[0] for seen in told.seen] == [OTHER]


def test_an_action_for_another_problem_than_its_episode_s_is_refused(told):
    env = KernelEnvironment(told, [PROBLEM, OTHER])
    env.reset(problem=PROBLEM)
    with pytest.raises(UsageError, match="another problem"):
        env.step(KernelAction(answer=ANSWER.format("fast"), problem=OTHER))
    assert told.seen == []


def test_an_environment_without_problems_is_refused(told):
    with pytest.raises(UsageError, match="at least one"):
        KernelEnvironment(told, [])


def test_sessions_of_openenv_s_server_are_apart(told):
    def make():
        return KernelEnvironment(told, [PROBLEM], turns=2)

    app = create_fastapi_app(make, KernelAction, KernelObservation, max_concurrent_envs=2)
    with TestClient(app) as client, client.websocket_connect("/ws") as one, client.websocket_connect("/ws") as two:

        def asked(session, kind, **data):
            session.send_json({"type": kind} | ({"data": data} if data else {}))
            answer = session.receive_json()
            assert answer["type"] != "error", answer
            return answer["data"]

        for session in (one, two):
            assert "class Model: pass" in str(asked(session, "reset"))
        assert asked(one, "step", answer=ANSWER.format("wrong"))["reward"] == 0.0
        assert asked(two, "step", answer=ANSWER.format("fast"))["done"]
        assert asked(one, "state")["step_count"] == 1
        assert asked(one, "step", answer=ANSWER.format("slow"))["done"]
