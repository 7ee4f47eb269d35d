"""A service under many clients, some of them hostile: nothing is lost, mixed up, or paid for by another."""

import contextlib
import select
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from benchmarks._service import PROBLEM
from benchmarks.serve_load import HEAD
from harness.api import SCHEMES
from harness.serve.connections import HEAD_S
from tests.serve.conftest import HANGS, RIGHT, candidate

HOSTILE = {
    "crashes": (candidate("os.kill(os.getpid(), 11)"), "crashed"),
    "hangs": (HANGS, "timeout"),
    "floods": (
        candidate("[print('x' * 100_000) for _ in range(300)]; raise RuntimeError('flood is over')"),
        "runtime_error",
    ),
    "forks": (
        candidate(
            "[subprocess.Popen(['sleep', '4321.5']) for _ in range(20)]; [os.fork() for _ in range(6)]; return x"
        ),
        "",
    ),
}
CPP = HEAD.format(zero=0, line="return y")


def submissions():
    """Forty: four hostile, one in C++, and the others told apart by what they raise, or right."""
    found = [(name, *one) for name, one in HOSTILE.items()]
    found.append(("cpp", CPP, "passed"))
    found += [(f"right{number}", f"{RIGHT}# {number}\n", "passed") for number in range(3)]
    raises = 'raise RuntimeError("this is number {number}")'
    found += [(f"number{number}", candidate(raises.format(number=number)), "runtime_error") for number in range(32)]
    return found


def processes_of(word):
    """Command lines on this machine that have the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return [line for line in found if word in line.split(b"\0")]


def submit_all(server, todo, answers, refusals):
    """One client: submit with patience, then collect."""
    with server.client() as http:
        accepted = []
        for name, source, _ in todo:
            body = {"problem": PROBLEM, "candidate": source, "name": name, "deadline_s": 600}
            while (answer := http.post("/evaluate", json=body)).status_code == 429:
                refusals.append(int(answer.headers["Retry-After"]))
                time.sleep(0.3)
            assert answer.status_code == 202, answer.text
            accepted.append((name, answer.json()["task_id"]))
        for name, identity in accepted:
            while (view := http.get(f"/tasks/{identity}?wait=30").json())["status"] in ("pending", "running"):
                pass
            answers[name] = view


@pytest.mark.slow
def test_nothing_is_lost_or_mixed_up_among_hostile_candidates(server):
    todo = submissions()
    assert len(todo) == 40
    answers, refusals = {}, []
    parts = [todo[number::8] for number in range(8)]
    clients = [threading.Thread(target=submit_all, args=(server, part, answers, refusals)) for part in parts]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert set(answers) == {name for name, _, _ in todo}
    assert refusals
    assert all(1 <= seconds <= 300 for seconds in refusals)
    for name, _, status in todo:
        view = answers[name]
        assert view["status"] == "completed", view
        record = view["record"]
        assert (record["candidate"], record["problem"]) == (name, PROBLEM)
        if status:
            assert record["status"] == status, (name, record["status"], record["message"])
        if name.startswith("number"):
            assert record["message"].endswith(f"this is number {name.removeprefix('number')}")
            assert record["message"] in view["feedback"]
        assert set(view["rewards"]) == set(SCHEMES)
        assert None not in view["rewards"].values()
    assert processes_of(b"4321.5") == []
    with server.client() as http:
        metrics = http.get("/metrics").text
        assert "assay_accepted_total 40\n" in metrics
        assert 'assay_evaluations_total{status="passed"} 4\n' in metrics
        assert "assay_queue_tasks 0\n" in metrics


def test_the_same_submission_is_answered_at_once_unless_it_is_forced(server):
    body = {"problem": PROBLEM, "candidate": candidate("raise RuntimeError('again')")}
    with server.client() as http:
        first = http.post("/evaluate?wait=60", json=body).json()
        assert (first["status"], first["cached"]) == ("completed", False)
        again = http.post("/evaluate", json=body)
        assert again.status_code == 200
        assert again.json()["cached"]
        assert again.json()["record"] == first["record"]
        assert again.json()["task_id"] != first["task_id"]
        # In KernelGYM's words.
        renamed = {"problem": PROBLEM, "kernel_code": body["candidate"], "force_refresh": True, "task_id": "mine-1"}
        anew = http.post("/evaluate?wait=60", json=renamed).json()
        assert (anew["task_id"], anew["cached"]) == ("mine-1", False)
        assert anew["record"]["phases_s"] != first["record"]["phases_s"]
        # Sent twice is accepted once.
        assert http.post("/evaluate", json=renamed).json() == anew
        assert http.post("/evaluate", json=body | {"task_id": "mine-1", "name": "other"}).status_code == 409


@pytest.mark.parametrize(
    "request_",
    [b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", b"no request\r\n\r\n"],
    ids=["upgrade", "garbage"],
)
def test_no_client_fills_its_log(server, request_):
    """An upgrade left two lines, and what is no HTTP one, without a token."""
    log = server.folder / "output"
    before = log.read_bytes()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(request_)
        assert client.recv(100).startswith(b"HTTP/1.1 ")
    assert log.read_bytes() == before


@pytest.mark.parametrize("token", ["x", "wrong", "{token}x", "\N{SNOWMAN}"])
def test_who_does_not_know_the_token_is_refused(server, token):
    with server.client() as http:
        for verb, path in (("POST", "/evaluate"), ("GET", "/queue"), ("GET", "/metrics"), ("DELETE", "/tasks/x")):
            said = f"Bearer {token.format(token=server.token)}".encode()
            answer = http.request(verb, path, headers={"Authorization": said})
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert http.get("/health", headers={"Authorization": ""}).json()["status"] == "ok"


BAD = {
    "no problem of that name": ({"problem": "toy/scales", "candidate": "x"}, 404, "did you mean 'toy/scale'"),
    "no variant like default": (
        {"problem": PROBLEM, "candidate": "x", "variant": "defalt"},
        400,
        "did you mean 'default'",
    ),
    "no such variant": ({"problem": PROBLEM, "candidate": "x", "variant": "wid"}, 400, "did you mean 'wide'"),
    "unknown field": ({"problem": PROBLEM, "candidate": "x", "prio": 1}, 400, "unknown field 'prio'"),
    "no such priority": (
        {"problem": PROBLEM, "candidate": "x", "priority": "urgent"},
        400,
        "priority: invalid enum value 'urgent'; one of low, normal, high",
    ),
    "no such precision": ({"problem": PROBLEM, "candidate": "x", "precision": "fp16"}, 400, "no precision 'fp16'"),
    "wrong type": ({"problem": PROBLEM, "candidate": 3}, 400, "candidate: expected a text, got a whole number"),
    "twice": ({"problem": PROBLEM, "candidate": "x", "kernel_code": "y"}, 400, "given twice"),
    "path": ({"problem": PROBLEM, "candidate": "x", "name": "../x"}, 400, "name: letters, digits"),
    "source": ({"problem_source": "x", "candidate": "x"}, 403, "by id only"),
    "too large": ({"problem": PROBLEM, "candidate": "x" * 1_100_000}, 413, "larger than"),
    "not JSON": ("{", 400, "not JSON"),
    "nested": ("[" * 100_000, 400, "not JSON"),
    "no number": (f'{{"problem": "{PROBLEM}", "candidate": "x", "deadline_s": Infinity}}', 400, "no number"),
    "half a letter": (f'{{"problem": "{PROBLEM}", "candidate": "\\ud800"}}', 400, "surrogate"),
    "half a letter in a name": ('{"\\ud800": 1}', 400, "surrogate"),
    "half a letter twice": ('{"\\ud800": 1, "\\ud800": 2}', 400, "is given 2 times"),
    "half a letter in a problem": ('{"problem": "\\ud800", "candidate": "x"}', 400, "surrogate"),
    "half a letter in a precision": (
        f'{{"problem": "{PROBLEM}", "candidate": "x", "precision": "\\ud800"}}',
        400,
        "surrogate",
    ),
    "a number of any size": (f'{{"problem": "{PROBLEM}", "candidate": "x", "deadline_s": {10**30}}}', 400, ""),
    "a field twice": (f'{{"problem": "{PROBLEM}", "candidate": "x", "candidate": "y"}}', 400, "'candidate' is given 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_request_that_is_wrong_is_told_why(server, case):
    body, status, why = BAD[case]
    with server.client() as http:
        headers = {"Content-Type": "application/json"}
        answer = http.post(
            "/evaluate", **({"json": body} if isinstance(body, dict) else {"content": body, "headers": headers})
        )
        assert answer.status_code == status
        assert why in answer.json()["error"]
        assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("verb", "path", "status"), [("GET", "/", 404), ("GET", "/health/", 404), ("PUT", "/evaluate", 405)]
)
def test_an_unknown_route_is_refused_as_json(server, verb, path, status):
    with server.client() as http:
        answer = http.request(verb, path)
        assert answer.status_code == status
        assert "/openapi.json" in answer.json()["error"]


def test_who_connects_and_asks_for_nothing_is_cut_off(server):
    head = b"GET /health HTTP/1.1\r\nHost: x\r\n"
    with contextlib.ExitStack() as kept:
        silent, slow = (kept.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(2))
        begun, ended = time.monotonic(), {}
        slow.sendall(head)
        while len(ended) < 2 and time.monotonic() < begun + 4 * HEAD_S:
            if slow not in ended:
                with contextlib.suppress(OSError):
                    slow.sendall(b"X: y\r\n")
            for client in {silent, slow} - set(ended):
                client.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    try:
                        assert client.recv(10) == b""
                    except ConnectionError:
                        pass
                    ended[client] = time.monotonic() - begun
    assert len(ended) == 2
    assert all(0.8 * HEAD_S < seconds < 3 * HEAD_S for seconds in ended.values())


def test_only_json_is_taken(server):
    # A page in the operator's browser can send a form without asking.
    with server.client() as http:
        assert http.post("/evaluate", data={"candidate": "x"}).status_code == 415


def test_the_document_has_every_route(server):
    with server.client() as http:
        found = http.get("/openapi.json").json()
    assert set(found["paths"]) == {
        *("/evaluate", "/evaluate/batch", "/tasks/{id}", "/health", "/queue", "/metrics"),
    }
    assert "EvaluateRequest" in found["components"]["schemas"]


def vanishing(server, body, *, whole):
    """Send a request, or the first half of one, and hang up."""
    request = (
        f"POST /evaluate?wait=30 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(request if whole else request[: -len(body) // 2])
        time.sleep(0.5)


def test_bodies_that_do_not_come_to_an_end_are_bounded_together(server):
    """Each of them is below the bound for one."""
    begun = (
        f"POST /evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    ).encode() + b" " * 900_000
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20)) for _ in range(19)
        ]
        for client in clients:
            # Whoever was refused may have been hung up on.
            with contextlib.suppress(OSError):
                client.sendall(begun)
        answered, _, _ = select.select(clients, [], [], 10)
        assert answered
        assert answered[0].recv(100).startswith(b"HTTP/1.1 503 ")
        with server.client() as http:
            assert http.get("/health").status_code == 200
    with server.client() as http:
        body = {"problem": PROBLEM, "candidate": candidate("raise RuntimeError('small')")}
        assert http.post("/evaluate?wait=60", json=body).json()["record"]["reason"] == "exception:RuntimeError"


def until(http, most):
    deadline = time.monotonic() + 15
    while (seen := http.get("/queue").json())["tasks"] > most and time.monotonic() < deadline:
        time.sleep(0.1)
    return seen["tasks"]


def test_clients_that_vanish_and_deadlines_that_pass_cost_nothing(server):
    """While a candidate hangs, and then without a trace."""
    with server.client() as http:
        hanging = http.post("/evaluate", json={"problem": PROBLEM, "candidate": HANGS, "force": True}).json()["task_id"]
        text = RIGHT.replace("\n", "\\n").replace('"', '\\"')
        body = f'{{"problem": "{PROBLEM}", "candidate": "{text}", "name": "vanished"}}'.encode()
        vanishing(server, body, whole=False)
        vanishing(server, body, whole=True)
        # The one that hangs is all that is left.
        assert until(http, 1) <= 1
        begun = time.monotonic()
        late = http.post("/evaluate?wait=20", json={"problem": PROBLEM, "candidate": RIGHT, "deadline_s": 0.5}).json()
        assert time.monotonic() - begun < 15
        assert (late["record"]["status"], late["record"]["reason"]) == ("harness_error", "deadline")
        assert set(late["rewards"].values()) == {None}
        assert http.delete(f"/tasks/{hanging}").json()["status"] == "cancelled"
        assert http.delete("/tasks/nobody").status_code == 404
        assert until(http, 0) == 0


def test_no_accepted_task_is_lost_by_a_kill(server):
    raises = 'raise RuntimeError("{number} after the kill")'
    tasks = [{"problem": PROBLEM, "candidate": candidate(raises.format(number=number))} for number in range(6)]
    with server.client() as http:
        answer = http.post("/evaluate/batch", json={"tasks": tasks})
        assert answer.status_code == 202
        accepted = [view["task_id"] for view in answer.json()["tasks"]]
        assert http.post("/evaluate/batch", json={"tasks": tasks * 3}).status_code == 413
    server.end(signal.SIGKILL)
    server.start()
    with server.client() as http:
        for number, identity in enumerate(accepted):
            while (view := http.get(f"/tasks/{identity}?wait=30").json())["status"] in ("pending", "running"):
                pass
            assert view["record"]["message"].endswith(f"{number} after the kill")
    assert server.end(signal.SIGTERM) == 0
    assert "Traceback" not in (server.folder / "output").read_text()
