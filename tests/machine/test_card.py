import msgspec
import pytest

from harness.machine.card import State, Watch, unusable


def gpu_state(**changes):
    return State(kind="cuda", **({"at_s": 0.0, "throttle": ()} | changes))


@pytest.mark.parametrize(
    "before, after, word",
    [
        ({}, {"at_s": 1.0}, ""),
        ({"throttle": ("thermal",)}, {}, "throttled"),
        ({}, {"throttle": ("power_brake",)}, "throttled"),
        # What dense matrix products do on any large card.
        ({"throttle": ("power_cap",)}, {"throttle": ("power_cap",)}, ""),
        ({"throttled_ns": {"thermal": 5}}, {"at_s": 1.0, "throttled_ns": {"thermal": 50_000_005}}, "throttled"),
        ({"throttled_ns": {"thermal": 5}}, {"at_s": 1.0, "throttled_ns": {"thermal": 1005}}, ""),
        ({}, {"at_s": 1.0, "throttled_ns": {"thermal": 50_000_005}}, ""),
        ({"throttled_ns": {"power_cap": 5}}, {"at_s": 1.0, "throttled_ns": {"power_cap": 900_000_000}}, ""),
        ({}, {"others": 1, "others_share": 0.4}, "disturbed"),
        ({}, {"others": 1, "others_share": 0.0}, ""),
        ({}, {"others": 1, "others_share": None}, ""),
        ({"throttle": None}, {"throttle": None}, ""),
        ({"throttle_events": 3}, {"throttle_events": 4}, "throttled"),
        ({"throttle_events": None}, {"throttle_events": 4}, ""),
    ],
)
def test_unusable(before, after, word):
    assert unusable(gpu_state(**before), gpu_state(**after)) == word


def test_idle_cores_are_there_for_others():
    before = State(kind="cpu", at_s=0.0)
    assert unusable(before, State(kind="cpu", at_s=1.0, others_share=0.2)) == ""
    assert unusable(before, State(kind="cpu", at_s=1.0, others_share=0.5)) == "disturbed"


class Scripted:
    def __init__(self, *states):
        self._states = list(states)

    def state(self):
        return self._states.pop(0)


def test_a_watch_sums_up():
    watch = Watch(
        Scripted(
            gpu_state(at_s=1.0, clock_mhz=1980, power_w=300.0, temperature_c=50),
            gpu_state(at_s=2.0, clock_mhz=1700, power_w=690.0, temperature_c=81, throttle=("power_cap", "thermal")),
            gpu_state(at_s=3.0, clock_mhz=1900, power_w=500.0, temperature_c=70, others=2, others_share=0.5),
        )
    )
    assert watch.summary() == {"looks": 0}
    with watch:
        assert watch.look() == "throttled"
    summary = watch.summary()
    assert summary["looks"] == 3
    assert summary["seconds"] == 2.0
    assert summary["ranges"]["clock_mhz"] == [1700, 1980]
    assert summary["ranges"]["power_w"] == [300.0, 690.0]
    assert summary["ranges"]["temperature_c"] == [50, 81]
    assert summary["ranges"]["others"] == [2, 2]
    assert summary["throttle"] == {"power_cap": 1, "thermal": 1}
    # The thermal look spoils both intervals it ends.
    assert summary["unusable"] == {"throttled": 2}
    assert summary["unknown"] == ["memory_clock_mhz", "pstate"]
    assert summary["first"]["clock_mhz"] == 1980
    assert len(msgspec.json.encode(summary)) < 2000
