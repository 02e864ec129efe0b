"""Damaged files are read or refused in words; they never end in a traceback, a warning, or a number that is none."""

import random

import numpy as np
import pytest

from calcheck import evaluate, read
from calcheck.errors import CalcheckError
from calcheck.metrics.cce import Cce
from tests.files import columns, wide, write

CELLS = ("", "nan", "inf", "1e400", "-0", "abc", '"', ";", "1,2", "é", "\x00", "9" * 20, "true", "2020-01-01")
TRIES = 60  # for each format and kind of damage


def flipped(content, rnd):
    for _ in range(rnd.randint(1, 8)):
        content[rnd.randrange(len(content))] = rnd.randrange(256)
    return content


def cut(content, rnd):
    return content[: rnd.randrange(len(content))]


def stuffed(content, rnd):
    place = rnd.randrange(len(content))
    content[place:place] = bytes(rnd.randrange(256) for _ in range(rnd.randint(1, 20)))
    return content


def repeated(content, rnd):
    return content + content[rnd.randrange(len(content)) :]


def edited(content, rnd):
    lines = content.decode().split("\n")
    row = rnd.randrange(len(lines))
    cells = lines[row].split(",")
    cells[rnd.randrange(len(cells))] = rnd.choice(CELLS)
    lines[row] = ",".join(cells)
    return "\n".join(lines).encode()


ENDINGS = ("parquet", "csv", "feather", "arrow", "npy")
DAMAGES = [(ending, damage) for ending in ENDINGS for damage in (flipped, cut, stuffed, repeated)] + [("csv", edited)]


@pytest.mark.parametrize(("ending", "damage"), DAMAGES)
def test_damage_is_refused_or_harmless(tmp_path, ending, damage):
    rnd = random.Random(f"{ending} {damage.__name__}")
    parts = columns(n=30)
    path = tmp_path / f"preds.{ending}"
    if ending == "npy":
        np.save(path, parts.pop("embedding"))
        told = {"embedding": str(path)}
        given = write(tmp_path / "rest.csv", parts)
    else:
        given, told = write(path, wide(parts) if ending == "csv" else parts), {}
    whole = path.read_bytes()
    refused = []
    for _ in range(TRIES):
        path.write_bytes(damage(bytearray(whole), rnd))
        try:
            results = evaluate(read(given, **told), [Cce()]).results
        except CalcheckError as error:
            refused.append(str(error))
        else:
            assert all(np.isfinite(result.value) for result in results)
    assert all(0 < len(message) < 1000 for message in refused)
