"""Claims belong to a file as it was imported, and to no other."""

import hashlib
import os

import msgspec
import pytest

from harness.catalog.claims import MANIFEST, Claim, Claims, Imported, Manifest, Origin
from harness.catalog.solutions import Candidate

CODE = b"class ModelNew: ..."
PLACE = "solutions/level1/19_ReLU/sample_0.py"


@pytest.fixture
def candidate(tmp_path):
    (tmp_path / PLACE).parent.mkdir(parents=True)
    (tmp_path / PLACE).write_bytes(CODE)
    digest = hashlib.sha256(CODE).hexdigest()
    claim = Claim(status="correct", speedup=1.5)
    one = Imported(file=PLACE, sha256=digest, problem="level1/19_ReLU", origin=Origin(file="x"), claim=claim)
    manifest = Manifest(source="x", candidates=[one], problems=[], left=[])
    (tmp_path / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return Candidate(problem="level1/19_ReLU", name="sample_0", path=tmp_path / PLACE, digest=digest)


def test_an_imported_file_has_its_claim(candidate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "solutions")
    here = candidate.path.relative_to(tmp_path / "solutions")
    assert Claims().about(msgspec.structs.replace(candidate, path=here)).speedup == 1.5
    assert Claims().about(candidate) == Claim(status="correct", speedup=1.5)


@pytest.mark.parametrize("change", [{"digest": "0"}, {"baseline": "eager"}])
def test_another_content_and_a_baseline_have_none(candidate, change):
    assert Claims().about(msgspec.structs.replace(candidate, **change)) == Claim()


def test_a_file_elsewhere_has_none(candidate, tmp_path):
    claims = Claims()
    for path in (tmp_path / "a.py", tmp_path / "solutions/level1/19_ReLU/other.py"):
        assert claims.about(msgspec.structs.replace(candidate, path=path)) == Claim()
    assert claims.notes == []


@pytest.mark.parametrize("content", [b"{}", b"[" * 100_000, b"\xff", b'{"schema": 99}', None])
def test_a_manifest_of_another_program_costs_the_claims_and_no_more(candidate, tmp_path, content):
    (tmp_path / MANIFEST).unlink()
    if content is None:
        os.mkfifo(tmp_path / MANIFEST)
    else:
        (tmp_path / MANIFEST).write_bytes(content)
    claims = Claims()
    assert claims.about(candidate) == claims.about(candidate) == Claim()
    assert len(claims.notes) == 1
