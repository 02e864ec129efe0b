"""Whether a change of names changed no number: `python -m tests.same_numbers record|compare FOLDER`.

`record` runs commands on a fixed set of files and stores their JSON reports. `compare` runs them again and compares
all numbers of each report, in their order, to the last digit. Names of fields may differ.
"""

import json
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
HUB = DATA / "forecasts"
X = "--inputs age,sex,bmi,bp,s1,s2,s3,s4,s5,s6"
GP, LINEAR = ROOT / "examples" / "diabetes.parquet", ROOT / "examples" / "diabetes_linear.parquet"
COMMANDS = (
    f"evaluate {GP}",
    f"evaluate {GP} {X} --replicates 39",
    f"evaluate {LINEAR} {X} --replicates 39 --metrics cce,jmmd,ammd,cmmd,fid",
    f"cce {GP} {X} --worst 3 --best 2",
    f"cce {GP} {X} --trials 3 --draws 5 --replicates 39",
    f"cce {GP} {X} --lambda 0.01 --kernel-x rbf --gamma-x median --estimator unbiased --replicates 39",
    f"cce {GP} {X} --solver nystroem --landmarks 60 --replicates 39",
    f"cce {GP} {X} --solver nystroem --landmarks 50 --landmark-sampling leverage --replicates 19",
    f"cce {GP} {X} --at {LINEAR} --replicates 39",
    f"compare {GP} {LINEAR} {X} --metrics zms,ece,crps,rmse,cce,lzms",
    f"prune {GP}",
    f"sweep {GP} {LINEAR} --inputs bmi,bp --vary lambda=0.01,0.1 --vary draws=1,5",
    f"reject {GP} --new {LINEAR} {X} --metrics mae --coverage 0.6",
    f"mcmd {GP} {LINEAR} --inputs bmi,bp --target y --permutations 39",
    "evaluate FEW/mixed.parquet --dist lognormal:scipy --replicates 39",
    "evaluate FEW/counts.parquet --dist poisson --replicates 39",
    "evaluate FEW/counts.parquet --dist nbinom:scipy --param n=n --param p=q --metrics zms,ece,crps,nll,pit,coverage",
    "evaluate FEW/samples.parquet --replicates 39",
    f"evaluate {HUB}/flusight_ensemble_quantile.csv --truth {HUB}/flusight_truth_hospital_admissions.csv",
    f"evaluate {DATA}/golden/golden_gaussian.csv",
    f"evaluate {DATA}/golden/golden_ensemble.parquet --samples s*",
    f"evaluate {DATA}/pernot/set1_Diffusion_RF.csv",
)


def write_few(folder):
    """Write a few rows of families that the examples lack."""
    rng = np.random.default_rng(3)
    n = 40
    x = rng.normal(size=(n, 3))

    def write(name, **columns):
        table = {key: pa.array(list(value)) for key, value in columns.items()}
        parquet.write_table(pa.table(table | {"embedding": pa.array(list(x))}), folder / name)

    s, scale = rng.uniform(0.5, 1, n), np.exp(rng.normal(size=n))
    write("mixed.parquet", y=scale * np.exp(s * rng.normal(size=n)), s=s, scale=scale)
    rate = rng.uniform(1, 9, n)
    write("counts.parquet", y=rng.poisson(rate).astype(float), rate=rate, n=rate, q=np.full(n, 0.5))
    write("samples.parquet", y=rng.normal(size=n), samples=rng.normal(size=(n, 20)))


def numbers(value):
    """Return all numbers of a report, in their order; versions and digests left out."""
    if isinstance(value, dict):
        return [number for key, each in value.items() if key != "schema_version" for number in numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def report_of(command, folder):
    """Return the JSON report of a command, as text."""
    words = command.replace("FEW", str(folder)).split()
    ran = subprocess.run(
        [sys.executable, "-m", "calcheck", "--no-config", *words, "--format", "json"], capture_output=True, check=False
    )
    return ran.stdout.decode() or ran.stderr.decode()


def main(action, folder):
    """Record or compare."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    differing = 0
    with tempfile.TemporaryDirectory() as few, ThreadPoolExecutor(2) as pool:
        write_few(Path(few))
        reports = pool.map(lambda command: report_of(command, few), COMMANDS)
        for index, (command, report) in enumerate(zip(COMMANDS, reports, strict=True)):
            file = folder / f"{index}.json"
            if action == "record":
                file.write_text(report)
                if not report.startswith("{"):
                    print("no report:", command, report[:300])
                continue
            try:
                same = numbers(json.loads(report)) == numbers(json.loads(file.read_text()))
            except ValueError:
                same = False
            differing += not same
            print("same" if same else f"DIFFERS {file} {report[:200]}", command)
            if not same:
                (folder / f"{index}.new.json").write_text(report)
    return differing


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
