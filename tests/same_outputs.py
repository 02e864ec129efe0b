"""Whether a change of the code changed no output: `python -m tests.same_outputs record|compare FOLDER [NAME…]`.

`record` runs scenarios on a fixed set of files, each of one or several commands, and stores what they print, their exit
codes and the files that they write; and the surface of the program: every help, the schemas, the signatures of the
Python functions. `compare` does the same again, and reports the outputs that are not equal byte for byte, and whether
at least all numbers are. States and reports that were recorded are read again. Names restrict both to the scenarios
that begin with one of them; "surface" is one.
"""

import difflib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
HUB, UNIT = DATA / "forecasts", DATA / "predictions"
X = "--inputs age,sex,bmi,bp,s1,s2,s3,s4,s5,s6"
GP, LINEAR = ROOT / "examples" / "diabetes.parquet", ROOT / "examples" / "diabetes_linear.parquet"
QUANTILES, INTERVALS = (
    ROOT / "examples" / "diabetes_quantiles.parquet",
    ROOT / "examples" / "diabetes_intervals.parquet",
)
FEW, NULL = "--replicates 39 --resamples 200", "--replicates 39"
JSON = "--format json"
SCENARIOS = {
    # evaluate and metrics
    "evaluate": f"evaluate {GP} {JSON}",
    "evaluate-inputs": f"evaluate {GP} {X} {FEW} {JSON}",
    "evaluate-conditional": f"evaluate {LINEAR} {X} {FEW} --metrics cce,jmmd,ammd,cmmd,fid {JSON}",
    "evaluate-quantiles": f"evaluate {QUANTILES} --crossing sort {FEW}",
    "evaluate-intervals": f"evaluate {INTERVALS} --level 0.9 {FEW}",
    "evaluate-lognormal": f"evaluate mixed.parquet --dist lognormal:scipy {FEW} {JSON}",
    "evaluate-poisson": f"evaluate counts.parquet --dist poisson {FEW} {JSON}",
    "evaluate-nbinom": "evaluate counts.parquet --dist nbinom:scipy --param n=n --param p=q"
    f" --metrics zms,ece,crps,nll,pit,coverage {FEW} {JSON}",
    "evaluate-samples": f"evaluate samples.parquet {FEW} {JSON}",
    "evaluate-hub": f"evaluate {HUB}/flusight_ensemble_quantile.csv"
    f" --truth {HUB}/flusight_truth_hospital_admissions.csv {FEW} {JSON}",
    "evaluate-golden": f"evaluate {DATA}/golden/golden_gaussian.csv {FEW} {JSON}",
    "evaluate-ensemble": f"evaluate {DATA}/golden/golden_ensemble.parquet --samples s* {FEW} {JSON}",
    "evaluate-pernot": f"evaluate {DATA}/pernot/set1_Diffusion_RF.csv {FEW} {JSON}",
    "evaluate-cluster": f"evaluate groups.parquet --cluster site {FEW} {JSON}",
    "evaluate-time": f"evaluate groups.parquet --time day {FEW}",
    "evaluate-weights": f"evaluate groups.parquet --weights w {FEW} {JSON}",
    "evaluate-targets": f"evaluate two.parquet --target y_1,y_2 --mean m_1,m_2 --std s_1,s_2 {FEW}",
    "evaluate-brief": f"evaluate {GP} --brief {FEW}",
    **{
        f"evaluate-{form}": f"evaluate {GP} {X} {FEW} --metrics zms,coverage,cce --format {form}"
        for form in ("csv", "markdown", "html", "latex", "jsonl")
    },
    "evaluate-pointwise": f"evaluate {GP} {X} {FEW} --pointwise rows.csv {JSON}",
    "cce-rows": f"cce {GP} {X} --worst 3 --best 2 {NULL} {JSON}",
    "cce-trials": f"cce {GP} {X} --trials 3 --draws 5 {NULL} {JSON}",
    "cce-rbf": f"cce {GP} {X} --lambda 0.01 --kernel-x rbf --gamma-x median --estimator unbiased {NULL} {JSON}",
    "cce-landmarks": f"cce {GP} {X} --solver nystroem --landmarks 60 {NULL} {JSON}",
    "cce-leverage": f"cce {GP} {X} --solver nystroem --landmarks 50 --landmark-sampling leverage {NULL} {JSON}",
    "cce-at": f"cce {GP} {X} --at {LINEAR} {NULL} {JSON}",
    "coverage-level": f"coverage {QUANTILES} --crossing sort --level 0.5",
    # pictures
    **{
        f"plot-{name}": f"{name} {GP} {NULL} --plot {name}.svg"
        for name in ("zms", "ece", "pit", "coverage", "ence", "lzms", "confidence-curve", "crps", "mean-miscalibration")
    },
    "plot-cce": f"cce {GP} {X} {NULL} --plot cce.svg",
    "plot-inspect": f"inspect {GP} --plot rows.svg",
    "plot-compare": f"compare {GP} {LINEAR} {FEW} --plot models.svg",
    "plot-slices": f"slices {GP} --by sex {FEW} --plot groups.svg",
    # studies
    "compare": f"compare {GP} {LINEAR} {X} --metrics zms,ece,crps,rmse,cce,lzms {FEW} {JSON}",
    "compare-table": f"compare {GP} {LINEAR} {FEW}",
    "trend": f"trend {GP} {LINEAR} --metrics zms,crps --positions 0,1 {FEW} --plot trend.svg",
    "diff": f"evaluate {GP} {FEW} {JSON} -o old.json ; evaluate {LINEAR} {FEW} {JSON} -o new.json"
    " ; diff old.json new.json",
    "slices": f"slices {GP} --columns age,sex,bmi {FEW}",
    "slices-by": f"slices {GP} --by sex,age:2 {FEW} {JSON}",
    "slices-tree": f"slices {GP} --columns age,sex,bmi --depth 2 {FEW} {JSON}",
    "recalibrate": "recalibrate first.parquet --to second.parquet -o mended.parquet --export map.json",
    "recalibrate-by": f"recalibrate {GP} --method scale --by sex --plot scale.svg {JSON}",
    "recalibrate-map": f"recalibrate {GP} --method scale --export map.json"
    f" ; recalibrate {LINEAR} --map map.json -o m.csv",
    "monitor": f"monitor series.parquet --time day --window 50 {JSON} --plot monitor.svg",
    "monitor-state": "monitor first.parquet --time day --save-state m.npz ; monitor m.npz second.parquet",
    "prune": f"prune {GP} {FEW} {JSON}",
    "reject": f"reject {GP} --new {LINEAR} {X} --metrics mae --coverage 0.6 {JSON}",
    "sweep": f"sweep {GP} {LINEAR} --inputs bmi,bp --vary lambda=0.01,0.1 --vary draws=1,5 {JSON}",
    "validity": "validity --nu 6 --rows 100 --sets 20 --resamples 200",
    "mcmd": f"mcmd {GP} {LINEAR} --inputs bmi,bp --target y --permutations 39 {JSON}",
    "mmd": f"mmd {GP} {LINEAR} --target y --permutations 39 {JSON}",
    **{
        f"{name}-two": f"{name} {GP} {LINEAR} --inputs bmi,bp --target y {NULL} {JSON}"
        for name in ("jmmd", "cmmd", "fid")
    },
    "check": f"check {GP} {FEW} --fail-on 'zms > 0.5' --warn-on 'ece < 1'",
    **{
        f"check-{form}": f"check {GP} {FEW} --fail-on 'zms > 0.5' --format {form}"
        for form in ("json", "junit", "github")
    },
    "check-default": f"check {GP} {LINEAR} {FEW}",
    "check-against": f"evaluate {GP} {FEW} {JSON} -o base.json ; check {LINEAR} {FEW} --against base.json --no-worse",
    "page": f"report {GP} {X} {FEW} -o page.html",
    "page-models": f"report {GP} {LINEAR} {FEW} -o page.html",
    # states, files, errors
    "state": f"evaluate first.parquet --metrics zms,ece,cce --inputs a --save-state s.npz {FEW} ; merge s.npz {JSON}",
    "state-merge": "zms first.parquet --save-state a.npz ; zms second.parquet --save-state b.npz"
    f" ; merge a.npz b.npz {JSON}",
    "inspect": f"inspect {HUB}/flusight_ensemble_quantile.csv --truth {HUB}/flusight_truth_hospital_admissions.csv",
    "convert": f"convert {UNIT}/ensemblepp_temp.csv -o rows.csv",
    "no-file": "evaluate missing.parquet",
    "no-column": f"evaluate {GP} --mean middle",
    "no-option": f"zms {GP} --bin 3",
}
"""Commands by scenario, several separated by a semicolon. They run in a folder with the files of `write_files`."""

AGAIN = {
    "old-state": f"merge OLD/state/s.npz {JSON}",
    "old-states": f"merge OLD/state-merge/a.npz OLD/state-merge/b.npz {JSON}",
    "old-monitor": f"monitor OLD/monitor-state/m.npz second.parquet {JSON}",
    "old-report": "diff OLD/diff/old.json OLD/diff/new.json",
    "old-map": "recalibrate second.parquet --map OLD/recalibrate/map.json -o m.csv",
}
"""Scenarios that read recorded files."""

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def write_files(folder):
    """Write the files of families, groups and series that the examples lack."""
    rng = np.random.default_rng(3)
    n = 40
    x = rng.normal(size=(n, 3))

    def write(name, embedding=None, **columns):
        table = {key: pa.array(list(value) if np.ndim(value) > 1 else value) for key, value in columns.items()}
        more = {} if embedding is None else {"embedding": pa.array(list(embedding))}
        parquet.write_table(pa.table(table | more), folder / name)

    s, scale = rng.uniform(0.5, 1, n), np.exp(rng.normal(size=n))
    write("mixed.parquet", x, y=scale * np.exp(s * rng.normal(size=n)), s=s, scale=scale)
    rate = rng.uniform(1, 9, n)
    write("counts.parquet", x, y=rng.poisson(rate).astype(float), rate=rate, n=rate, q=np.full(n, 0.5))
    write("samples.parquet", x, y=rng.normal(size=n), samples=rng.normal(size=(n, 20)))
    mean, n = rng.normal(size=200), 200
    days = np.datetime64("2026-01-01") + np.arange(n)
    sites = [f"s{each}" for each in np.arange(n) // 8]
    std = np.exp(0.3 * rng.normal(size=n))
    rows = {"y": mean + std * rng.normal(size=n), "mean": mean, "std": std}
    write("groups.parquet", **rows, site=sites, day=days, w=rng.integers(1, 4, n).astype(float))
    series = {**rows, "day": days, "a": rng.normal(size=n)}
    write("series.parquet", **series)
    write("first.parquet", **{name: column[:120] for name, column in series.items()})
    write("second.parquet", **{name: column[120:] for name, column in series.items()})
    pairs = {f"{name}_{target}": rng.normal(size=n) for name in ("y", "m") for target in (1, 2)}
    write("two.parquet", **pairs, s_1=np.ones(n) * 1.4, s_2=np.ones(n))


def calcheck(arguments, folder):
    """Run calcheck in a folder of files."""
    environment = os.environ | {"COLUMNS": "80", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "calcheck", "--no-config", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


def outputs_of(commands, recorded):
    """Return the outputs of a scenario by name: what its commands print, and the files that they write."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder)
        before = {file.name for file in folder.iterdir()}
        for place, command in enumerate(commands.replace("OLD", str(recorded)).split(" ; ")):
            ran = calcheck(shlex.split(command), folder)
            found[f"{place}.out"] = ran.stdout
            found[f"{place}.err"] = ran.stderr + f"exit code {ran.returncode}\n".encode()
        found |= {file.name: file.read_bytes() for file in folder.iterdir() if file.name not in before}
    return {name: clean(content, recorded) for name, content in found.items()}


def clean(content, recorded):
    """Return bytes without the names of the recorded folder and of this checkout."""
    return content.replace(str(recorded).encode(), b"OLD").replace(str(ROOT).encode(), b"ROOT")


def surface():
    """Return the surface of the program: helps, schemas, names of metrics, signatures of the Python functions."""
    import calcheck as package
    from calcheck.cli.app import make_program

    names = ["", *sorted(make_program().commands)]
    with ThreadPoolExecutor(2) as pool:
        helps = pool.map(lambda name: calcheck([*name.split(), "--help"], ROOT).stdout, names)
        found = {f"help {name}".strip(): each for name, each in zip(names, helps, strict=True)}
    for command in ("schema", "schema diff", "schema recalibration", "metrics --format json"):
        found[command] = calcheck(shlex.split(command), ROOT).stdout
    public = {name: getattr(package, name) for name in sorted(package.__all__)}
    signatures = [f"{name}{inspect.signature(each)}" for name, each in public.items() if inspect.isfunction(each)]
    found["python"] = "\n".join([*public, *signatures, ""]).encode()
    return found


def numbers(content):
    """Return all numbers of a text, in their order."""
    return NUMBER.findall(content)


def difference(old, new):
    """Return in words how two outputs differ."""
    if old is None or new is None:
        return "is new" if old is None else "is missing"
    try:
        lines = [each.decode().splitlines() for each in (old, new)]
    except UnicodeDecodeError:
        return "differs (binary)"
    changed = [line for line in difflib.unified_diff(*lines, lineterm="", n=0) if line[:2] not in ("--", "++", "@@")]
    shown = "".join(f"\n    {line[:150]}" for line in changed[:8])
    return f"differs in {len(changed)} lines{', not in numbers' if numbers(old) == numbers(new) else ''}{shown}"


def main(action, folder, *names):
    """Record or compare; return the number of outputs that differ."""
    recorded = Path(folder).resolve()
    recorded.mkdir(parents=True, exist_ok=True)
    if action == "record":
        record(outputs(SCENARIOS | {"surface": ""}, recorded, names), recorded)
        record(outputs(AGAIN, recorded, names), recorded)
        return 0
    found = outputs(SCENARIOS | AGAIN | {"surface": ""}, recorded, names)
    return sum(compare(name, each, recorded / name) for name, each in found.items())


def outputs(scenarios, recorded, names):
    """Return the outputs of the scenarios that begin with one of the names, or of all."""
    chosen = {name: commands for name, commands in scenarios.items() if name.startswith(names or "")}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: outputs_of(chosen[name], recorded) if chosen[name] else surface(), chosen)
        return dict(zip(chosen, found, strict=True))


def record(found, folder):
    """Write outputs to a folder for each scenario."""
    for name, outputs in found.items():
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
        for each, content in outputs.items():
            (folder / name / each).write_bytes(content)
        codes = [content.decode().splitlines()[-1] for each, content in outputs.items() if each.endswith(".err")]
        print(json.dumps({name: codes}))


def compare(name, outputs, folder):
    """Print the outputs of a scenario that differ from those recorded; return their number."""
    old = {file.name: file.read_bytes() for file in folder.iterdir()} if folder.exists() else {}
    differing = [each for each in sorted(old | outputs) if old.get(each) != outputs.get(each)]
    for each in differing:
        print(f"{name}/{each} {difference(old.get(each), outputs.get(each))}")
    return len(differing)


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 99))
