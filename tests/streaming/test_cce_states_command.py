"""States of CCE on the command line: merging, checkpoints, and batches of rows that do not fit in memory."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from calcheck.storage.archives import FileCheckpoint, to_arrays
from calcheck.streaming.metric_accumulators import NystroemSums, accumulator_of
from calcheck.streaming.state import accumulate, report_from_state
from tests.embeddings.test_nystroem_streaming import METRIC, rows
from tests.helpers.files import columns, write
from tests.helpers.shorthand import texts
from tests.helpers.streams import Batches

CCE = ("--landmarks", 64, "--gamma-y", 0.5, "--replicates", 19)


def results(ended):
    assert (ended.code, ended.err) == (0, ""), ended
    return json.loads(ended.out)["results"]


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Return the paths of three days, and of all of them in one file."""
    folder, whole = tmp_path_factory.mktemp("days"), columns(n=300, d=4)
    whole["embedding"] = whole["embedding"].astype(float)
    paths = [
        write(folder / f"{day}.parquet", {name: values[part] for name, values in whole.items()})
        for day, part in enumerate(np.array_split(np.arange(300), 3))
    ]
    return paths, write(folder / "whole.parquet", whole)


@pytest.mark.slow
def test_states_of_cce_can_be_merged(calcheck, days, tmp_path):
    states = [tmp_path / f"{day}.state" for day in range(3)]
    (first,) = results(calcheck("cce", days[0][0], *CCE, "--save-state", states[0], "--format", "json"))
    assert first["details"]["solver"]["name"] == "nystroem"
    assert "processed in batches" in first["details"]["solver"]["reason"]
    for path, state in zip(days[0][1:], states[1:], strict=True):
        results(calcheck("cce", path, "--settings-from", states[0], "--save-state", state, "--format", "json"))
    (merged,) = results(calcheck("merge", *states, "--format", "json"))
    (whole,) = results(calcheck("cce", days[1], "--settings-from", states[0], "--format", "json"))
    assert_allclose(merged["value"], whole["value"], rtol=1e-10)
    assert merged["details"]["rows"] == 300
    assert merged["details"]["null"]["replicates"] == 19
    assert merged["verdict"] == "fail"  # the targets are independent of the predictions
    (alone,) = results(calcheck("merge", states[0], "--format", "json"))
    assert alone["value"] == first["value"]
    assert "STATES" in calcheck("merge").refused()


@pytest.mark.slow
def test_cce_and_other_metrics_share_a_state(calcheck, days, tmp_path):
    both, cce = tmp_path / "both.state", tmp_path / "cce.state"
    asked = ("--metrics", "cce,zms", "--no-bootstrap", "--replicates", 19, "--format", "json")
    found = results(calcheck("evaluate", days[0][0], *asked, "--save-state", both))
    assert [each["metric"] for each in found] == ["zms", "cce"] or [each["metric"] for each in found] == ["cce", "zms"]
    results(calcheck("cce", days[0][1], "--settings-from", both, "--save-state", cce, "--format", "json"))
    assert "zms only in the first" in calcheck("merge", both, cce).refused()
    assert (
        "--lambda 0.5 contradicts --settings-from"
        in calcheck("cce", days[0][1], "--settings-from", both, "--lambda", 0.5).refused()
    )
    line = calcheck("cce", days[0][1], "--settings-from", both, "--gamma-x", 2).refused()
    assert "which has its default: omit --gamma-x" in line
    apart = tmp_path / "apart.state"
    results(calcheck("cce", days[0][2], "--replicates", 19, "--save-state", apart, "--format", "json"))
    line = calcheck("merge", cce, apart).refused()
    assert "cce was prepared on other rows: its setting 'features.pivots.mean' differs" in line


class Interrupted(Batches):
    """Rows whose fourth pass is interrupted: the others inspect them, look for dependence, and sample them."""

    readings = 0

    def batches(self):
        type(self).readings += 1
        for number, batch in enumerate(super().batches()):
            if self.readings == 4 and number == 4:
                raise KeyboardInterrupt
            yield batch


def test_an_interrupted_accumulation_of_cce_resumes_with_the_same_result(tmp_path, monkeypatch):
    path, updated = str(tmp_path / "checkpoint"), []
    data, run = rows(), Run(replicates=19)
    expected = accumulate(Batches(data), [METRIC], run)
    checkpoint = FileCheckpoint(path, {}, resume=False)
    with pytest.raises(KeyboardInterrupt):
        accumulate(Interrupted(data), [METRIC], Run(replicates=19, checkpoint=checkpoint))
    original = type(accumulator_of(METRIC)).sum_batch_with_replicates
    monkeypatch.setattr(
        "calcheck.streaming.metric_accumulators.NystroemAccumulator.sum_batch_with_replicates",
        lambda self, *arguments: updated.append(1) or original(self, *arguments),
    )
    checkpoint = FileCheckpoint(path, {}, resume=True)
    state = accumulate(Batches(data), [METRIC], Run(replicates=19, checkpoint=checkpoint))
    assert len(updated) < 7
    kept = to_arrays("sums", state.sums[0], NystroemSums)
    for name, values in to_arrays("sums", expected.sums[0], NystroemSums).items():
        assert np.array_equal(kept[name], values), name
    assert report_from_state(state, run) == report_from_state(expected, run)


@pytest.mark.slow
def test_rows_beyond_the_memory_limit_are_processed_in_batches(calcheck, days):
    asked = ("--metrics", "cce,zms", "--replicates", 19, "--format", "json")
    few = calcheck("evaluate", days[1], *asked, "--memory", "7200")  # bytes of 300 rows of three numbers
    assert not any("processed in batches" in warning for each in results(few) for warning in texts(each["warnings"]))
    many = calcheck("evaluate", days[1], *asked, "--memory", "7199")
    for each in results(many):
        assert texts(each["warnings"])[0].startswith("rows are processed in batches: targets and predictions need")
    refused = calcheck("evaluate", days[1], "--metrics", "zms,jmmd", "--replicates", 19, "--memory", "7199").refused()
    assert "jmmd needs all rows at once and cannot be computed in batches" in refused
    found = {each["metric"]: each for each in results(many)}
    assert found["cce"]["details"]["solver"]["name"] == "nystroem"
    assert found["zms"]["interval"] == "normal"
    (cce,) = results(calcheck("cce", days[1], "--memory", "7199", "--replicates", 19, "--format", "json"))
    assert_allclose(cce["value"], found["cce"]["value"], rtol=1e-10)
    (exact,) = results(calcheck("cce", days[1], "--memory", "7199", "--solver", "cg", "--no-null", "--format", "json"))
    assert exact["details"]["solver"]["name"] == "cg"
    (few,) = results(calcheck("cce", days[1], "--memory", "7199", "--worst", 2, "--replicates", 19, "--format", "json"))
    assert len(few["details"]["worst"]) == 2


def test_filtered_rows_are_kept_in_memory(calcheck, tmp_path):
    path = write(tmp_path / "kinds.parquet", columns(n=60) | {"kind": np.array(["a", "b"] * 30)})
    asked = ("--metrics", "zms", "--memory", "1000", "--no-bootstrap", "--replicates", 19, "--format", "json")
    for options, batched in (((), True), (("--filter", "kind=a"), False)):
        (found,) = results(calcheck("evaluate", path, *options, *asked))
        assert any("processed in batches" in warning for warning in texts(found["warnings"])) == batched


def test_options_of_exact_solvers_are_refused_for_states(calcheck, days, tmp_path):
    for option in (("--solver", "cholesky"), ("--solver", "cg"), ("--draws", 2), ("--lambda-model", 0.5)):
        line = calcheck("cce", days[0][0], *option, "--save-state", tmp_path / "a.state").refused()
        assert f"{option[0]}" in line
        assert "needs all rows at once" in line
    assert accumulator_of(Cce(solver="nystroem")) is not None
