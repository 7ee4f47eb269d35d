"""A config file's mistakes each get a sentence with file, line and the nearest valid key."""

import os
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import config
from harness.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


def test_an_empty_file_is_all_defaults(tmp_path):
    assert config.load(write(tmp_path, "")) == config.Config()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "variants: [small]\ntiming:\n  precison: 0.01\n",
            "run.yaml:3: unknown key 'timing.precison'; did you mean 'precision'?",
        ),
        ("problms: [a]\n", "run.yaml:1: unknown key 'problms'; did you mean 'problems'?"),
        (
            "exclude:\n  - problem: x\n  - candidat: y\n",
            "run.yaml:3: unknown key 'exclude[1].candidat'; did you mean 'candidate'?",
        ),
        ("device: auto\ntiming:\n  budget_s: fast\n", "run.yaml:3: timing.budget_s: expected a number, got a text"),
        ("timing:\n", "run.yaml:1: timing: is empty; remove it, or give it a value"),
        ("timing:\n  budget_s: -1\n", "run.yaml:2: timing.budget_s: expected a number > 0.0"),
        ("variants: small\n", "run.yaml:1: variants: expected a list, got a text"),
        ("a: [1\n", "run.yaml:2: not valid YAML"),
        ("compile: {headers: leen}\n", "run.yaml:1: compile.headers: invalid enum value 'leen'"),
        (
            "compile: {arch: hopper}\n",
            "compile.arch: hopper: not an architecture; write it like 90a or 9.0a, 86 or 8.6",
        ),
        ("compile: {arch: 8.6}\n", "run.yaml:1: compile.arch: expected a text, got a number; write it in quotes"),
        (
            "seed: 2020-99-99\n",
            "run.yaml:1: not valid YAML: '2020-99-99' is not a valid timestamp: month must be in 1..12",
        ),
        ("seed: 0x" + "f" * 4000, "seed"),
        ("seed: -1", "seed"),
        ("seed: " + "9" * 5000, "is not a valid int: Exceeds the limit"),
        ('out: a\nseed: !!int ""\n', "run.yaml:2: not valid YAML: '' is not a valid int"),
        ('seed: !!int "_"\n', "run.yaml:1: not valid YAML: '_' is not a valid int"),
        ('timing: {precision: !!float ""}\n', "run.yaml:1: not valid YAML: '' is not a valid float"),
        ("check: {stress: !!bool maybe}\n", "run.yaml:1: not valid YAML: 'maybe' is not a valid bool"),
        ("seed: !!timestamp abc\n", "run.yaml:1: not valid YAML: 'abc' is not a valid timestamp"),
        ("seed: !!float 9" + ":59" * 200 + ".5\n", "is not a valid float"),
        ('seed: 1\nout: "o\\ud800"\n', "run.yaml:2: not valid YAML: half a surrogate pair in a text"),
        ('compile: {cache_dir: "\\ud800"}\n', "run.yaml:1: not valid YAML: half a surrogate pair in a text"),
        ('define_variants: {"*": {v:\n {N: "\\ud800"}}}\n', "run.yaml:2: not valid YAML: half a surrogate pair"),
        ('out: "\\U00110000"\n', "run.yaml: not valid YAML: a \\U of no character"),
        ('out: "\\UFFFFFFFF"\n', "run.yaml: not valid YAML: a \\U of no character"),
        ('define_variants: {"*": {v: {N: {1: 2}}}}', "define_variants.*.v.N: the key 1 is no text; write it in quotes"),
        ('define_variants: {"*": {v: {N: [1, .inf]}}}', "define_variants.*.v.N[1]: inf is no number"),
        ('define_variants: {"*": {v: {N: .nan}}}', "define_variants.*.v.N: nan is no number"),
        ('define_variants: {"*": {v: {N: 2026-01-01}}}', "define_variants.*.v.N: a date, which is neither"),
        ('define_variants: {"*": {v: {N: !!set {a}}}}', "define_variants.*.v.N: a set, which is neither"),
        ('define_variants: {"*": {v: {N: !!binary aGk=}}}', "define_variants.*.v.N: a bytes, which is neither"),
        ('define_variants: {"*": {v: {N: 99999999999999999999}}}', "define_variants.*.v.N: a number of more than"),
        ('"\\ud800": 1\n', "run.yaml:1: not valid YAML: half a surrogate pair in a text"),
        ("device: cpu\nout: a\ndevice: cpu\n", "run.yaml:3: 'device' is given twice, at first in line 1"),
        ("timing:\n  budget_s: 1\n  budget_s: 2\n", "run.yaml:3: 'budget_s' is given twice, at first in line 2"),
        ("define_variants: {a: {v: {N: 1, N: 2}}}\n", "run.yaml:1: 'N' is given twice, at first in line 1"),
        ('compile: {arch: "\\uff19.\\uff10"}\n', ": not an architecture; write it like 90a or 9.0a, 86 or 8.6"),
        ("problems: " + "[" * 5000 + "]" * 5000, "run.yaml: not valid YAML: nested too deeply"),
        ('define_variants: &x {"*": *x}', "run.yaml: more than 100000 values, counting repetitions by aliases (*name)"),
        ("limits: {load_s: .inf}", "run.yaml:1: limits.load_s: expected a number <= 1000000000.0"),
        ("compile: {cache_gb: .inf}", "run.yaml:1: compile.cache_gb: expected a number <= 1000000000.0"),
        ("timing: {budget_s: 1e30}", "timing.budget_s: expected a number <= 1000000000.0"),
        ("timing: {min_pairs: 1e-3}", "timing.min_pairs: expected a whole number, got a number"),
        ("variants: 1e3", "variants: expected a list, got a text"),
        ('out: "a\\0b"', "must not contain a null character"),
        ("timing: {min_pairs: 20, max_pairs: 10}\n", "timing.max_pairs (10) is below timing.min_pairs (20)"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, text, sentence):
    with pytest.raises(UsageError) as raised:
        config.load(write(tmp_path, text))
    assert sentence in str(raised.value)


def test_a_mapping_that_is_merged_in_repeats_no_key(tmp_path):
    text = (
        "define_variants:\n  a: &a {v: &v {N: 1}}\n  b: {w: &w {<<: *v, N: 2}, x: {<<: *w, N: 3}, y: {<<: [*v, *w]}}\n"
    )
    found = config.load(write(tmp_path, text)).define_variants["b"]
    assert found == {"w": {"N": 2}, "x": {"N": 3}, "y": {"N": 1}}


def test_an_exponent_needs_neither_point_nor_sign(tmp_path):
    text = "timing: {precision: 1e-3, budget_s: 2E1, min_pairs: 1e1}\nseed: 5e2\nvariants: [1e3]\n"
    found = config.load(write(tmp_path, text), ["limits.load_s=1.5e2"])
    assert (found.timing.precision, found.timing.budget_s, found.timing.min_pairs) == (0.001, 20.0, 10)
    assert (found.seed, found.limits.load_s, found.variants) == (500, 150.0, ["1e3"])


@pytest.mark.parametrize(("word", "torch_s"), [("90a", "9.0a"), ("sm_86", "8.6"), ("100a", "10.0a"), ("9.0a", "9.0a")])
def test_architectures_may_be_written_as_nvcc_or_as_torch_does(tmp_path, word, torch_s):
    assert config.load(write(tmp_path, f'compile: {{arch: "{word}"}}\n')).compile.arch == torch_s


def test_a_missing_file_is_said_so(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the config .*none\.yaml"):
        config.load(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_said_so(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_bytes(b"problems: [\xff]\n")
    with pytest.raises(UsageError, match=r"run\.yaml: byte 12 is not UTF-8"):
        config.load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"run\.yaml: it is not a regular file"):
        config.load(path)


@pytest.mark.parametrize(
    ("text", "override", "sentence"),
    [
        (
            "device: cpu\ntiming: {budget_s: 1}\n",
            "timing.budget_s=x",
            "--set timing.budget_s=x: timing.budget_s: ",
        ),
        ("", "seed=[", "--set seed=[:1: not valid YAML"),
        (
            "",
            "seed=2020-99-99",
            "--set seed=2020-99-99:1: not valid YAML: '2020-99-99' is not a valid timestamp: month must",
        ),
        ("", "timing={budget_s: 1, budget_s: 2}", ":1: 'budget_s' is given twice"),
        ("- a\n", "timing.budget_s=3", "run.yaml:1: config: expected a table of keys, got a list"),
    ],
)
def test_a_mistake_is_blamed_on_who_made_it(tmp_path, text, override, sentence):
    with pytest.raises(UsageError) as raised:
        config.load(write(tmp_path, text), [override])
    assert sentence in str(raised.value)


def test_overrides_win_and_are_checked(tmp_path):
    path = write(tmp_path, "timing: {budget_s: 3}\n")
    loaded = config.load(path, ["timing.budget_s=5", "variants=[a, b]"])
    assert (loaded.timing.budget_s, loaded.variants) == (5.0, ["a", "b"])
    with pytest.raises(UsageError, match=r"unknown key 'timing\.budge_s'; did you mean 'budget_s'"):
        config.load(path, ["timing.budge_s=5"])
    with pytest.raises(UsageError, match=r"write it as a\.b=value"):
        config.load(path, ["timing"])


def test_every_option_is_shown_with_its_default():
    path = ROOT / "configs/every-option.yaml"
    assert config.load(path) == config.Config()
    shown = yaml.safe_load(path.read_text())
    assert shown.keys() == {field.name for field in msgspec.structs.fields(config.Config)}
    assert set(config.SECTIONS) == {name for name, value in shown.items() if isinstance(value, dict) and value}
    for section in config.SECTIONS:
        assert shown[section].keys() == {
            f.name for f in msgspec.structs.fields(type(getattr(config.Config(), section)))
        }


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_the_configs_of_the_repository_load(path):
    config.load(path)


PIECES = st.sampled_from(
    [
        *(
            "define_variants",
            "out",
            "seed",
            "timing",
            "variants",
            "*",
            "v",
            "N",
            "1",
            ".inf",
            ".nan",
            "2026-01-01",
            "1e3",
        ),
        *(
            ": ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "\n",
            "  ",
            "- ",
            "&x ",
            "*x",
            "<<: ",
            "!!set ",
            "!!float ",
            "!!binary ",
            "? ",
        ),
        *('"', "'", "\\U00110000", "\\ud800", "\\x", "|", "%YAML 9", "---", "\0", "\ufeff", "\x85", "0x", "1:9"),
    ]
)
VALUES = st.recursive(
    st.sampled_from(["1", ".inf", ".nan", "2026-01-01", "x", "~", "true", '"\\UFFFFFFFF"', "!!set {a}", "9" * 20]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]")
        | st.dictionaries(inner, inner, max_size=3).map(
            lambda found: f"{{{', '.join(f'{k}: {v}' for k, v in found.items())}}}"
        )
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=20).map("".join) | VALUES.map('define_variants: {{"*": {{v: {{N: {}}}}}}}'.format))
def test_every_text_is_a_config_that_json_holds_or_one_sentence(tmp_path, text):
    said, found = "", {}
    try:
        found = config.load(write(tmp_path, text)).define_variants
    except UsageError as error:
        said = str(error)
    assert "\n" not in said
    assert msgspec.json.decode(msgspec.json.encode(found, order="deterministic")) == found
