"""The judge's end of a runner on a made-up card, and runners that lie to it."""

import os
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest
import torch

pytest.importorskip("cuda.bindings.driver")

from harness.config import Limits
from harness.links.cuda_link import CudaLink
from harness.links.late_elements import BYTES
from harness.links.link import INPUT_PLACES, Draw, LateOutput
from harness.links.start_watch import StartWatch
from harness.machine.card_turns import CardTurns
from harness.wire import cuda_memory
from harness.wire.channel import Channel, DeadlineExceeded, PeerGone, ProtocolError, pair
from harness.wire.cuda_gate import Gate
from harness.wire.cuda_memory import SharedMemory
from harness.wire.layout import place, view
from harness.wire.messages import Enqueued, Finished, FromRunner, SharedBlock, ToRunner
from harness.wire.nodes import INPUT_BLOCK, NOWHERE, Sequence, TensorRef
from tests.links.made_up_card import L2_BYTES, Card, Stream, word, write

SIZE = 3000
SECRET, DONE = 256, 512


class Runner(threading.Thread):
    """An honest runner that doubles its input, on the made-up card. Subclasses lie."""

    def __init__(self, card, sock):
        super().__init__(daemon=True)
        self.card, self.channel = card, Channel(sock, ToRunner)
        # Of a process of its own.
        self.stream = Stream(card)
        self.blocks, self.gate, self.words, self.kept, self.places = {}, None, 0, [], []

    def run(self):
        try:
            while True:
                message, fds = self.channel.receive(None)
                for block in message.blocks:
                    self.blocks[block.id] = SharedMemory.open(fds[block.fd], block.nbytes).tensor
                if 0 in self.blocks and self.gate is None:
                    self.gate, self.words = Gate(self.blocks[0]), self.blocks[0].data_ptr()
                self.burst(message)
        except PeerGone:
            pass
        finally:
            self.channel.close()

    def burst(self, message):
        self.gate.wait_open(message.number, self.stream.cuda_stream)
        self.kept = []
        self.heard = message
        for call in message.calls:
            ref = call.inputs.items[0]
            self.places.append(ref.offset)
            given, out = view(self.blocks[ref.block], ref), self.room()
            self.stream.put(lambda given=given, out=out: self.work(given, out))
            self.kept.append(out)
        self.finish(message)

    def room(self):
        return torch.zeros(SIZE)

    def work(self, given, out):
        out.copy_(given * 2)

    def finish(self, message):
        self.gate.mark_done(self.stream.cuda_stream)
        self.answer(message)

    def answer(self, message):
        refs, blocks = [], []
        for out in self.kept:
            handle, offset = self.card.exported(out)
            blocks.append(SharedBlock(id=len(blocks), nbytes=out.untyped_storage().nbytes(), cuda_handle=handle))
            refs.append(
                TensorRef(
                    block=blocks[-1].id,
                    offset=offset,
                    dtype="float32",
                    shape=tuple(out.shape),
                    stride=tuple(out.stride()),
                    device="cuda",
                )
            )
        self.channel.send(Enqueued(number=message.number, nonce=message.nonce, outputs=refs, blocks=blocks))
        self.channel.send(Finished(number=message.number, claimed_us=1.0))


@pytest.fixture
def connected(monkeypatch):
    """A function that connects a link to a runner of the given kind, ready for bursts of four calls."""
    card = Card()
    card.install(monkeypatch)
    monkeypatch.setattr(CudaLink, "ENQUEUE_S", 0.3)
    links, runners = [], []

    def connect(kind=Runner, shape=(SIZE,), late=False, turns=None, told=lambda what: None):
        ours, its = pair()
        limits = Limits(call_s=3.0)
        freezer = SimpleNamespace(thaw=lambda: told("thaw"), freeze=lambda: told("freeze"))
        link = CudaLink(
            Channel(ours, FromRunner),
            freezer,
            torch.device("cpu"),
            limits,
            late,
            StartWatch(),
            warm=False,
            turns=turns or CardTurns(),
        )
        runner = kind(card, its)
        given, made = (place([torch.zeros(some)], NOWHERE)[0] for some in (SIZE, shape))
        link.reserve(4, given, {"output": made[0]})
        runner.start()
        links.append(link)
        runners.append(runner)
        return link, runner

    yield SimpleNamespace(connect=connect, card=card)
    for link in links:
        link.close()
    card.over = True
    for runner in runners:
        runner.join(5.0)


class SlowAtFirst(Runner):
    def burst(self, message):
        if message.number == 1:
            time.sleep(1.0)
        super().burst(message)


@pytest.mark.parametrize("gated", [True, False])
def test_what_needs_no_runner_is_done_once_while_it_enqueues_or_before_all(connected, gated):
    events = []
    link, _ = connected.connect(told=events.append)
    link.burst(draws(1), gated=False)
    del events[:]
    given = draws(2)
    reading = link.burst(given, gated=gated, meanwhile=lambda: events.append("meanwhile"))
    assert reading.gated is gated
    assert events.count("meanwhile") == 1
    assert events.index("meanwhile") == (events.index("thaw") + 1 if gated else 0)
    assert torch.equal(link.output(1), 2 * given[1].inputs[0])


def test_another_lanes_burst_does_not_wait_for_one_that_is_not_timed(connected):
    file = os.memfd_create("turns")
    one, other = (CardTurns(os.open(f"/proc/self/fd/{file}", os.O_RDWR)) for _ in range(2))
    events = []
    link, _ = connected.connect(SlowAtFirst, turns=one, told=events.append)

    def bursts():
        while "thaw" not in events:
            time.sleep(1e-3)
        with other.shared():
            for _ in range(3):
                with other.alone():
                    events.append("burst")
                time.sleep(0.02)

    with one.shared():
        thread = threading.Thread(target=bursts)
        thread.start()
        draw = Draw(inputs=(torch.ones(SIZE),), seed=0)
        link.burst([draw], gated=False, timed=False)
        assert events == ["thaw", *["freeze", "burst", "thaw"] * 3, "freeze"]
        assert torch.equal(link.output(0), 2 * draw.inputs[0])
    thread.join(5)
    other.close()
    os.close(file)


@pytest.fixture
def turns():
    """Those of two lanes."""
    file = os.memfd_create("turns")
    both = [CardTurns(os.open(f"/proc/self/fd/{file}", os.O_RDWR)) for _ in range(2)]
    yield both
    for one in both:
        one.close()
    os.close(file)


def is_alone(turns, act):
    """Whether another lane that is at work keeps it waiting."""
    one, other = turns
    its_end = threading.Event()

    def work():
        with other.shared():
            its_end.wait(0.3)

    with one.shared():
        thread = threading.Thread(target=work)
        thread.start()
        before_s = one.waited_s
        act()
        its_end.set()
    thread.join(5)
    return one.waited_s - before_s > 0.1


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("timed", [True, False])
def test_only_what_is_timed_has_the_card_for_itself(connected, turns, gated, timed):
    link, _ = connected.connect(turns=turns[0])
    link.burst(draws(1), gated=False, timed=False)
    assert is_alone(turns, lambda: link.burst(draws(2), gated=gated, timed=timed)) is timed


def test_what_is_told_before_the_gate_opens_was_told_before(connected):
    """No seed, and of what is no tensor nothing new: what hangs on it alone would be done before the clock starts."""
    link, runner = connected.connect()
    same, other = (Draw(inputs=(torch.randn(SIZE), {"time": number}), seed=7) for number in (0.25, 0.5))
    assert link.burst([same, same]).gated
    assert {call.seed for call in runner.heard.calls} == {None}
    assert not link.burst([same, other]).gated
    assert not runner.heard.gated
    assert link.burst([same]).gated


def test_where_nothing_may_be_told_before_the_clock_starts_no_burst_is_gated(connected):
    link, runner = connected.connect(late=True)
    assert not link.burst(draws(2)).gated
    assert [call.seed for call in runner.heard.calls] == [0, 1]


def draws(count=4):
    return [Draw(inputs=(torch.randn(SIZE),), seed=number) for number in range(count)]


@pytest.mark.parametrize("gated", [True, False])
def test_outputs_of_an_honest_runner_are_read(connected, gated):
    link, _ = connected.connect()
    for count in (1, 4, 2):
        given = draws(count)
        reading = link.burst(given, gated=gated)
        assert reading.gated is gated
        assert reading.judge_us > 0
        for call, draw in enumerate(given):
            assert torch.equal(link.output(call), draw.inputs[0] * 2)
            assert torch.equal(link.seen_inputs(call)[0], draw.inputs[0])


def names_since(card, begin):
    return [name for name, _ in card.trace[begin:]]


def test_inputs_start_and_look_follow_each_other_without_the_host(connected):
    """One copy of all inputs behind the stop, and the look at all outputs enqueued before the stop is over."""
    link, _ = connected.connect()
    given = draws(4)
    link.burst(given, gated=False)
    released = []
    release = link._hold.release

    def look_first(number):
        # What the judge's stream will do was all enqueued while it stood.
        released.append((link._way.at, link._stream._left))
        release(number)

    link._hold.release = look_first
    begin = len(connected.card.trace)
    link.burst(given)
    ((way_at, waiting),) = released
    assert way_at is None
    assert waiting >= 9
    # The look may still be under way.
    link._stream.synchronize()
    trace = connected.card.trace[begin:]
    done = next(place for place, told in enumerate(trace) if told == ("waited", link._gate._done))
    way, start, end = (next(p for p, told in enumerate(trace) if told == ("event", e)) for e in judge_events(link))
    assert way < start < done < end
    assert [name for name, _ in trace[way + 1 : start]] == ["copy_", "zero_"]
    opened = trace.index(("wrote", (link._gate._gate, link._number)))
    assert trace[opened - 1] == ("wrote", (link._gate._secret, link._secret))
    assert [name for name, _ in trace[start + 1 : opened - 1]] == ["scatter_"]
    assert "index_select" in [name for name, _ in trace[end:]]


def judge_events(link):
    return link._way, link._start, link._end


def test_an_ungated_burst_starts_before_its_inputs_are_there(connected):
    link, _ = connected.connect()
    begin = len(connected.card.trace)
    link.burst(draws(2), gated=False)
    trace = connected.card.trace[begin:]
    start = trace.index(("event", link._start))
    inputs = next(p for p, (name, told) in enumerate(trace) if name == "copy_" and told.data_ptr() in range_of(link))
    assert start < inputs < trace.index(("wrote", (link._gate._gate, 1)))


def range_of(link):
    block = link._blocks[INPUT_BLOCK]
    return range(block.data_ptr(), block.data_ptr() + block.numel())


def test_inputs_lie_at_one_of_many_places(connected):
    link, runner = connected.connect()
    for _ in range(20):
        link.burst(draws(1))
    assert 5 < len(set(runner.places)) <= INPUT_PLACES
    assert all(place % 512 == 0 for place in runner.places)


def test_shared_memory_holds_nothing_but_zeros_and_inputs(connected):
    link, runner = connected.connect()
    link.burst([Draw(inputs=(torch.zeros(SIZE),), seed=0) for _ in range(4)])
    assert not link._blocks[INPUT_BLOCK].any()
    assert not runner.blocks[INPUT_BLOCK].any()


class SaysDoneAhead(Runner):
    """Writes one large value to `done` in advance, which a wait for `or more` would always be content with."""

    def work(self, given, out):
        time.sleep(0.2)
        super().work(given, out)

    def finish(self, message):
        write(self.words + DONE, 2**31 - 1)
        self.gate.mark_done(self.stream.cuda_stream)
        write(self.words + DONE, 2**31 - 1)
        self.answer(message)


def test_a_done_of_before_ends_no_burst(connected):
    link, _ = connected.connect(SaysDoneAhead)
    for _ in range(3):
        given = draws(1)
        assert link.burst(given).judge_us > 0.15e6
        assert torch.equal(link.output(0), given[0].inputs[0] * 2)


class RepeatsItsSecret(Runner):
    """Keeps the secret of each burst, and says it in the next, in place of that one's."""

    last = 0

    def finish(self, message):
        write(self.words + DONE, self.last)
        self.stream.put(lambda: setattr(self, "last", word(self.words + SECRET)))
        if self.last:
            self.stream.put(lambda said=self.last: write(self.words + DONE, said))
        else:
            self.gate.mark_done(self.stream.cuda_stream)
        self.answer(message)


def test_one_value_serves_one_burst(connected):
    link, runner = connected.connect(RepeatsItsSecret)
    link.burst(draws(1), deadline_s=1.0)
    assert runner.last == link._secret
    with pytest.raises(DeadlineExceeded):
        link.burst(draws(1), deadline_s=0.5)


class Watches(Runner):
    """Has the secret looked for all the time until the gate opens."""

    seen: frozenset[int] = frozenset()

    def burst(self, message):
        seen = set()
        for _ in range(50):
            seen.add(word(self.words + SECRET))
            time.sleep(1e-3)
        self.seen = frozenset(seen)
        super().burst(message)


def test_the_secret_is_not_there_before_the_gate_opens(connected):
    link, runner = connected.connect(Watches)
    for _ in range(3):
        link.burst(draws(1))
        assert runner.seen == {0}


class WorksLate(Runner):
    """Says that it is done, and goes on working in outputs that its strides spread over a large span."""

    def room(self):
        return torch.zeros(1 << 22).as_strided((SIZE,), (1 << 10,))

    def work(self, given, out):
        def later():
            time.sleep(0.1)
            out.copy_(given * 2)

        threading.Thread(target=later, daemon=True).start()


def test_late_work_in_spread_outputs_is_seen(connected):
    link, _ = connected.connect(WorksLate)
    link.burst(draws(4))
    time.sleep(0.5)
    with pytest.raises(LateOutput):
        link.output(0)


class SpreadsOut(Runner):
    """Honest, with strides of its own."""

    def room(self):
        return torch.zeros(1 << 22).as_strided((SIZE,), (1 << 10,))


def test_spread_outputs_are_copied_without_what_lies_between(connected):
    link, _ = connected.connect(SpreadsOut)
    given = draws(2)
    link.burst(given)
    output = link.output(1)
    assert torch.equal(output, given[1].inputs[0] * 2)
    assert output.untyped_storage().nbytes() == SIZE * 4


class Repeats(Runner):
    """One element, as often as a stride of 0 can repeat it."""

    times = SIZE

    def room(self):
        return torch.zeros(1).expand(self.times)

    def work(self, given, out):
        out[:1] = 7.0


class RepeatsTooOften(Repeats):
    times = 1 << 40


def test_elements_that_share_memory_are_no_outputs(connected):
    link, _ = connected.connect(Repeats)
    with pytest.raises(ProtocolError, match="share memory"):
        link.burst(draws(1))


def test_more_elements_than_were_asked_for_are_not_copied(connected):
    link, _ = connected.connect(RepeatsTooOften)
    link.burst(draws(1))
    output = link.output(0)
    assert isinstance(output, TensorRef)
    assert output.shape == (1 << 40,)


class WaitsForItself(Runner):
    """Cannot say where its outputs are before the gate opens."""

    def answer(self, message):
        self.stream.synchronize()
        super().answer(message)


def test_who_waits_for_the_device_is_timed_from_before_its_inputs(connected):
    link, _ = connected.connect(WaitsForItself)
    given = draws(2)
    reading = link.burst(given)
    assert not reading.gated
    assert not reading.slow_start
    assert torch.equal(link.output(1), given[1].inputs[0] * 2)


class NeverDone(Runner):
    """Says where its outputs are, and nothing more."""

    def finish(self, message):
        self.answer(message)


def test_a_runner_that_never_ends_holds_nobody(connected):
    link, _ = connected.connect(NeverDone)
    with pytest.raises(DeadlineExceeded):
        link.burst(draws(1), deadline_s=0.5)
    link.close()
    assert link._stream.query()


def test_a_longer_way_than_without_a_candidate_is_told(connected):
    link, _ = connected.connect()
    link._watch.learn(1, 1000.0)
    put = link._put_inputs

    def with_a_turn_of_another_process():
        put()
        link._stream.put(lambda: time.sleep(0.1))

    link._put_inputs = with_a_turn_of_another_process
    assert link.burst(draws(2)).slow_start


def test_the_way_is_learnt_for_short_and_long_bursts(connected):
    link, _ = connected.connect()
    link.learn_start(draws(1)[0])
    assert {calls: len(ways) for calls, ways in link._watch._seen_us.items()} == {1: 12, 4: 12}


def test_the_way_is_expected_to_grow_with_the_calls():
    watch = StartWatch()
    assert not watch.slow(4, 1e9)
    for jitter in range(10):
        watch.learn(1, 100.0 + jitter)
        watch.learn(11, 1100.0 + jitter)
    watch.learn(1, 9000.0)
    assert not watch.slow(6, 700.0)
    assert watch.slow(6, 850.0)
    assert not watch.slow(11, 1200.0)
    assert watch.slow(1, 281.0 + 100.0)


def test_persisting_lines_are_reset_before_each_burst(connected):
    link, _ = connected.connect()
    link.burst(draws(1))
    link.burst(draws(1))
    assert names_since(connected.card, 0).count("reset L2") == 2


class WorksAhead(Runner):
    """Has all of the work done between inputs and start, as a copy engine can, and nothing left behind the gate."""

    def work(self, given, out):
        """Done already."""

    def burst(self, message):
        self.message = message
        super().burst(message)

    def work_ahead(self):
        for call, out in zip(self.message.calls, self.kept, strict=True):
            self.ahead(view(self.blocks[INPUT_BLOCK], call.inputs.items[0]), out)

    def ahead(self, given, out):
        out.copy_(given * 2)


class ClearsAhead(WorksAhead):
    """Has only the clearing of the output done."""

    def ahead(self, given, out):
        out.zero_()

    def work(self, given, out):
        out[:10] = given[:10] * 2


@pytest.mark.parametrize("kind", [WorksAhead, ClearsAhead])
def test_what_is_done_before_the_clock_is_in_vain(connected, kind):
    link, runner = connected.connect(kind)
    # On a busy machine, too, it is held.
    link.ENQUEUE_S = 3.0
    put = link._put_inputs

    def put_and_let_work():
        put()
        link._stream.put(lambda: runner.work_ahead())

    link._put_inputs = put_and_let_work
    for _ in range(3):
        given = draws(4)
        for one in given:
            one.inputs[0][10:] *= kind is WorksAhead
        assert link.burst(given).gated
        wrong = [(link.output(call) != one.inputs[0] * 2).sum() for call, one in enumerate(given)]
        assert all(count > BYTES // 64 for count in wrong)


def test_an_empty_burst_has_as_many_late_elements(connected):
    link, _ = connected.connect()
    link.burst(draws(3))
    places, right = link._late._places, link._late._right
    link.null_us()
    assert len(link._late._places) == len(places) == len(right) == 2 * BYTES
    spare = range(link._flush.data_ptr(), link._flush.data_ptr() + L2_BYTES)
    first = link._late._memory.data_ptr()
    assert all(first + place in spare for place in link._late._places[:100].tolist())


class SharesRows(Runner):
    """The last part of a call's output is the first part of the next one's, and written once."""

    rooms = 0

    def room(self):
        self.rooms += 1
        first = (self.rooms - 1) % 4 * (SIZE - 10)
        return self.arena[first : first + SIZE]

    def burst(self, message):
        self.arena = torch.zeros(4 * SIZE)
        super().burst(message)


def test_outputs_of_two_calls_that_overlap_are_refused(connected):
    link, _ = connected.connect(SharesRows)
    link.burst(draws(1))
    with pytest.raises(ProtocolError, match="share memory"):
        link.burst(draws(2))


class Doubles(Runner):
    """Writes to its input, in place, as the reference does."""

    def work(self, given, out):
        out.copy_(given.amax().expand(SIZE))
        given.mul_(2)


class DoublesLater(Doubles):
    """The same, behind the end of the clock."""

    def burst(self, message):
        self.given = []
        super().burst(message)

    def work(self, given, out):
        out.copy_(given.amax().expand(SIZE))
        self.given.append(given)

    def finish(self, message):
        super().finish(message)
        self.stream.put(self.later)

    def later(self):
        time.sleep(0.05)
        for given in self.given:
            given.mul_(2)


def test_what_becomes_of_inputs_is_seen_when_the_clock_stops(connected):
    for kind, in_time in ((Doubles, True), (DoublesLater, False)):
        link, runner = connected.connect(kind)
        link.inputs_change = True
        given = draws(2)
        assert link.burst(given).gated
        runner.stream.synchronize()
        if in_time:
            assert torch.equal(link.seen_inputs(1)[0], given[1].inputs[0] * 2)
        else:
            assert torch.equal(link._snapshot._inputs[1][0], given[1].inputs[0] * 2)
            with pytest.raises(LateOutput):
                link.seen_inputs(1)


class AnswersWithThousands(Runner):
    """Each call returns thousands of tensors, all of which would be spoilt behind the stop."""

    def answer(self, message):
        self.many = many = torch.zeros(SIZE)
        handle, offset = self.card.exported(many)
        block = SharedBlock(id=0, nbytes=many.untyped_storage().nbytes(), cuda_handle=handle)
        one = TensorRef(block=0, offset=offset, dtype="float32", shape=(1,), stride=(1,), device="cuda")
        calls = [[msgspec.structs.replace(one, offset=offset + 4 * i) for i in range(SIZE)] for _ in message.calls]
        outputs = [Sequence(kind="list", items=tuple(call)) for call in calls]
        self.channel.send(Enqueued(number=message.number, nonce=message.nonce, outputs=outputs, blocks=[block]))
        self.channel.send(Finished(number=message.number, claimed_us=1.0))


def test_no_more_tensors_are_looked_at_than_were_asked_for(connected):
    link, _ = connected.connect(AnswersWithThousands)
    assert link.burst(draws(1)).gated
    assert len(link._snapshot.tensors) == 1
    assert len(link.output(0)) == SIZE


def test_an_address_where_no_allocation_begins_is_refused(connected, monkeypatch):
    link, _ = connected.connect()
    monkeypatch.setattr(cuda_memory, "ALLOCATION_BYTES", 1 << 40)
    with pytest.raises(ProtocolError, match="no allocation begins"):
        link.burst(draws(1))
