"""Options whose value is a list: on the command line, in variables and files, and in stored reports."""

import json
import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.cli.app import PANELS
from calcheck.core.metric_info import MetricInfo
from calcheck.errors import OptionError
from calcheck.metrics import METRICS
from calcheck.metrics.accuracy import Mae
from calcheck.metrics.scores import Pinball
from calcheck.options import option, options_of
from calcheck.studies.sweep.study import parse
from calcheck.studies.validity.options import ValidityOptions

pytestmark = pytest.mark.new_program


@dataclass(frozen=True)
class Tiers(Mae):
    """Mean absolute error, with a list as an option."""

    info: ClassVar[MetricInfo] = replace(Mae.info, name="tiers")
    levels: tuple[float, ...] = option("Levels.", (0.1, 0.9))
    counts: tuple[int, ...] | None = option("Counts.")


@pytest.fixture
def tiers(monkeypatch, tmp_path):
    """Register a metric with lists as options, and stand in a folder with a settings file.

    Commands that are imported meanwhile have its options, and are forgotten.
    """
    before = set(sys.modules)
    module = ModuleType("calcheck.metrics.tiers")
    module.Tiers = Tiers
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(METRICS.modules, "tiers", "tiers")
    monkeypatch.setitem(PANELS["Metrics"], "tiers", "metric_commands")
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "calcheck.toml"
    for name in [name for name in sys.modules if name.startswith("calcheck.cli.") and name not in before]:
        del sys.modules[name]


@pytest.fixture
def levels(tiers, calcheck, preds):
    """Return the levels in the report of a run with a settings file."""

    def run(text, *arguments):
        tiers.write_text(text)
        ended = calcheck(*(preds if part == "preds" else part for part in arguments), "--no-null", "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        return json.loads(ended.out)["results"][0]["options"]["levels"]

    return run


def test_a_list_is_separated_by_commas_or_a_list_of_toml(levels, monkeypatch):
    assert levels("", "tiers", "preds") == [0.1, 0.9]
    assert levels("", "tiers", "preds", "--levels", "0.1, 0.5,0.9") == [0.1, 0.5, 0.9]
    assert levels("levels = [0.2, 1]", "tiers", "preds") == [0.2, 1.0]
    assert levels("levels = 0.2", "tiers", "preds") == [0.2]
    assert levels("[tiers]\nlevels = [0.3]", "evaluate", "preds", "--metrics", "tiers") == [0.3]
    monkeypatch.setenv("CALCHECK_TIERS_LEVELS", "0.4,0.6")
    assert levels("levels = [0.2]", "tiers", "preds") == [0.4, 0.6]
    assert levels("", "evaluate", "preds", "--metrics", "tiers") == [0.4, 0.6]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", ("--levels", "0.1,x"), "--levels takes a list of numbers, got '0.1,x'"),
        ("", ("--levels", ","), "--levels takes a list of numbers, got ','"),
        ("", ("--counts", "1.5"), "--counts takes a list of whole numbers, got '1.5'"),
        ("levels = true", (), "levels in calcheck.toml takes a list of numbers, got true"),
        ("levels = '0.5'", (), "levels in calcheck.toml takes a list of numbers, got the text '0.5'"),
        ("levels = ['0.5']", (), "levels in calcheck.toml takes a list of numbers, got the list ['0.5']"),
        ("[tiers]\ncounts = [1.5]", (), "counts in [tiers] of calcheck.toml takes a list of whole numbers"),
    ],
)
def test_what_is_no_list_is_refused(tiers, calcheck, preds, text, arguments, message):
    tiers.write_text(text)
    assert message in calcheck("tiers", preds, *arguments).refused()


def test_a_stored_list_rebuilds_the_same_metric(calcheck, preds, tmp_path):
    base = tmp_path / "base.json"
    assert calcheck("pinball", preds, "--levels", "0.1,0.5", "--no-null", "--format", "json", "-o", base).code == 0
    assert calcheck("check", preds, "--against", base, "--no-null").code == 0
    metric = Pinball.from_options(json.loads(base.read_text())["results"][0]["options"])
    assert metric == Pinball(levels=(0.1, 0.5))
    assert hash(metric) == hash(Pinball(levels=(0.1, 0.5)))


@pytest.mark.usefixtures("tiers")
def test_the_help_shows_a_list(calcheck):
    found = " ".join(calcheck("tiers", "--help").out.split())
    assert "--levels FLOAT,… Levels. Default: 0.1,0.9." in found


def test_evenly_spaced_numbers_have_a_short_form(levels):
    spaced = np.linspace(1e-5, 0.99999, 50)
    for arguments in (("ece", "preds", "--levels", "linspace:1e-5:0.99999:50"), ("ece", "preds")):
        text = "" if "--levels" in arguments else "levels = 'linspace:1e-5:0.99999:50'"
        assert_allclose(levels(text, *arguments), spaced, rtol=1e-15)
    assert levels("", "tiers", "preds", "--levels", "linspace:0:1:3,0.75") == [0, 0.5, 1, 0.75]


@pytest.mark.parametrize("text", ["0:1", "0:1:1", "0:1:1e9", "0:1:99999999", "0:x:3", "0:inf:3", "0:1:-3"])
def test_a_malformed_range_is_refused(calcheck, preds, text):
    line = calcheck("ece", preds, "--levels", f"linspace:{text}").refused()
    assert f"--levels takes a list of numbers, got 'linspace:{text}'" in line


def test_consecutive_numbers_have_a_short_form_that_includes_the_last():
    declared = next(each for each in options_of(ValidityOptions) if each.name == "nu")
    assert declared.parse("2..5,9") == declared.take([2, 3, 4, 5, 9], "nu") == (2.0, 3.0, 4.0, 5.0, 9.0)


def test_a_list_or_a_word_is_parsed_from_every_source():
    declared = next(each for each in options_of(METRICS["ece"]) if each.name == "level_weights")
    assert declared.parse("1,2") == declared.take([1, 2], "weights") == (1.0, 2.0)
    assert declared.parse("uniform") == declared.take("uniform", "weights") == "uniform"
    assert declared.placeholder == "FLOAT,…|uniform|frequency"
    with pytest.raises(OptionError, match="takes a list of numbers or one of uniform, frequency, got 'unifrom'"):
        declared.parse("unifrom")


def test_the_lists_of_a_sweep_are_separated_by_semicolons():
    found = parse("levels=0.1,0.5;0.9", Tiers)
    assert found.values == ((0.1, 0.5), (0.9,))
    assert found.description == ("0.1,0.5", "0.9")


def test_a_list_of_names_may_be_text_with_commas():
    @dataclass(frozen=True)
    class Names:
        names: tuple[str, ...] = option("Names.", ())

    (declared,) = options_of(Names)
    assert declared.parse("a, b,") == declared.take(["a", "b"], "names") == declared.take("a,b", "names") == ("a", "b")
    with pytest.raises(OptionError, match="takes a list of names"):
        declared.take([1], "names")
