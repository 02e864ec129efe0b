"""Files that tools wrote themselves: what is read without any option, and the command that is proposed otherwise."""

import re
import shlex

import numpy as np
import pytest

FILES = {
    "scikit-learn": (
        "",
        "gaussian",
        """\
y,mean,std
0.4274,0.9954,0.5176
0.5498,0.3104,0.5177
-1.8503,-1.1081,0.5229
-1.144,-0.8652,0.5164
-0.7779,-0.8201,0.5164
-1.6011,-1.0048,0.5171
""",
    ),
    "statsmodels 0.15.0": (
        "",
        "intervals at 0.95",
        """\
y,mean,mean_se,mean_ci_lower,mean_ci_upper,obs_ci_lower,obs_ci_upper
0.4274,0.9754,0.0578,0.8614,1.0894,-0.0192,1.9701
0.5498,0.2947,0.0553,0.1855,0.4038,-0.6995,1.2888
-1.8503,-1.118,0.0736,-1.2633,-0.9727,-2.1167,-0.1193
-1.144,-0.8255,0.0465,-0.9172,-0.7339,-1.8179,0.1668
-0.7779,-0.7851,0.048,-0.8798,-0.6905,-1.7778,0.2075
-1.6011,-0.9667,0.0535,-1.0723,-0.8612,-1.9604,0.027
""",
    ),
    "NGBoost 0.6.0": (
        "--dist gaussian",
        "gaussian",
        """\
loc,scale,y
0.3225,0.8905,0.4274
0.0553,0.8536,0.5498
-0.5108,0.8977,-1.8503
-0.5108,0.8877,-1.144
-0.5108,0.8877,-0.7779
-0.5108,0.8877,-1.6011
""",
    ),
    "CatBoost 1.2.10": (
        "--mean 0 --var 1",
        "gaussian",
        """\
0,1,y
0.5804,0.4743,0.4274
0.0736,0.2355,0.5498
-0.868,0.7415,-1.8503
-0.6561,0.2968,-1.144
-0.6311,0.3719,-0.7779
-0.7469,0.492,-1.6011
""",
    ),
    "statsforecast 2.1.1": (
        "",
        "quantiles",
        """\
unique_id,ds,cutoff,y,Naive,Naive-lo-80,Naive-lo-95,Naive-hi-80,Naive-hi-95
a,2024-02-24,2024-02-23,-1.178,-2.1545,-3.471,-4.1679,-0.838,-0.1411
a,2024-02-25,2024-02-23,-1.5332,-2.1545,-4.0163,-5.0019,-0.2927,0.6929
a,2024-02-26,2024-02-23,-0.7852,-2.1545,-4.4347,-5.6418,0.1258,1.3328
a,2024-02-27,2024-02-23,-1.4713,-2.1545,-4.7875,-6.1813,0.4785,1.8723
a,2024-02-25,2024-02-24,-1.5332,-1.178,-2.4933,-3.1896,0.1374,0.8337
a,2024-02-26,2024-02-24,-0.7852,-1.178,-3.0381,-4.0228,0.6822,1.6669
""",
    ),
    "uncertainty-toolbox 0.1.1": (
        "",
        "gaussian",
        """\
y_pred,y_std,y_true
0.0,0.51,0.4807
0.0501,0.505,0.0057
0.1002,0.5,1.2424
0.1499,0.4949,0.2805
0.1993,0.4899,0.1156
0.2482,0.4849,-0.206
""",
    ),
    "LightGBM 4.7.0, a model for each level": (
        "",
        "quantiles",
        """\
y,pred_0.05,pred_0.5,pred_0.95
-1.0607,-1.783,-1.151,-0.2408
0.1963,0.0872,0.7229,1.2145
0.488,0.1393,0.7051,0.8281
-0.9649,-1.6498,-1.1746,-0.148
-0.8707,-1.23,-0.9226,0.0434
-0.3263,-0.8252,-0.19,0.1212
""",
    ),
    "LightGBMLSS 0.6.1, quantiles": (
        "",
        "quantiles",
        """\
quant_0.05,quant_0.5,quant_0.95,y
-1.7566,-0.9695,-0.1582,-1.0607
0.2381,0.6602,1.0614,0.1963
0.2296,0.5901,0.9679,0.488
-1.8755,-1.1615,-0.474,-0.9649
-1.0344,-0.8279,-0.6136,-0.8707
-0.8156,-0.2878,0.2546,-0.3263
""",
    ),
    "LightGBMLSS 0.6.1, samples": (
        "",
        "samples",
        """\
y_sample0,y_sample1,y_sample2,y_sample3,y_sample4,y
-0.8159,-0.8458,-0.6904,-2.0758,-0.7036,-1.0607
0.6017,0.4073,0.8037,0.7037,1.0903,0.1963
0.5174,0.4903,0.374,0.5913,0.6005,0.488
-1.3889,-1.6123,-1.3749,-0.3242,-1.5309,-0.9649
-0.7945,-0.807,-0.8615,-0.8341,-0.6393,-0.8707
-0.0595,0.2058,-0.334,-0.205,-0.4174,-0.3263
""",
    ),
    "GPyTorch 1.15.2": (
        "",
        "gaussian",
        """\
y,mean,variance
-0.5695,-1.0334,0.219
0.9881,0.9463,0.1932
1.1084,1.0193,0.1925
-0.3545,-0.8728,0.1927
0.3428,0.8168,0.1932
-1.5971,-1.0419,0.1931
""",
    ),
    "NGBoost 0.6.0, log-normal": (
        "--dist lognormal:scipy",
        "lognormal",
        """\
y,s,scale
0.3462,0.9807,0.5753
1.2168,0.7078,1.4602
1.629,0.6855,1.4602
0.381,0.8134,0.5753
0.4186,0.7633,0.5753
0.7216,0.6366,0.8858
""",
    ),
    "NGBoost 0.6.0, Poisson": (
        "--dist poisson",
        "poisson",
        """\
y,mu
0,1.0329
0,1.6824
2,1.6824
0,0.9957
2,1.0329
0,1.2227
""",
    ),
    "Pyro 1.9.2, a column for each draw": (
        "--samples '[0-9]*'",
        "samples",
        """\
0,1,2,3,4,y
-0.5693,-1.3534,-1.337,-0.9484,-1.15,-1.0607
0.5364,0.0561,-0.2005,0.5783,0.1251,0.1963
0.4259,0.9719,1.4597,0.0535,0.4545,0.488
-1.1128,-1.5152,-1.3733,-0.8865,-1.601,-0.9649
-1.3132,-1.7382,-1.5394,-1.2303,-0.9519,-0.8707
-0.571,-0.2794,-1.0725,-0.1982,-0.311,-0.3263
""",
    ),
}
"""By tool: the options of the command that is proposed, none if the file is read without; the family; and the file."""


@pytest.mark.parametrize("tool", FILES)
def test_a_file_of_a_tool_is_read_or_the_command_that_reads_it_is_proposed(calcheck, tmp_path, monkeypatch, tool):
    options, family, text = FILES[tool]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "preds.csv").write_text(text)
    command = f"calcheck preds.csv {options}".strip()
    if options:
        assert command in calcheck("evaluate", "preds.csv").refused()
    shown = calcheck(*shlex.split(command)[1:], "--no-null", "--resamples", "0")
    assert shown.code == 0, shown.err
    assert re.search(rf"6 rows.* {family} \(", shown.out)


def test_draws_of_predictions_beside_those_of_parameters_are_read(calcheck, tmp_path, monkeypatch):
    """NumPyro 0.22 and Pyro 1.9: ``Predictive`` returns (draws, rows) of targets, and (draws, …) of parameters."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("preds.npz", y=rng.normal(size=6), obs=rng.normal(size=(9, 6)), w=rng.normal(size=(9, 1, 2)))
    command = "calcheck preds.npz --samples obs"
    assert command in calcheck("evaluate", "preds.npz").refused()
    shown = calcheck(*command.split()[1:], "--no-null", "--resamples", "0", "--format", "json")
    assert "6 rows" in calcheck(*command.split()[1:], "--no-null", "--resamples", "0").out
    assert "not read, as draws without rows: w" in shown.out


def test_intervals_in_an_array_propose_the_level_of_their_tool(calcheck, tmp_path, monkeypatch):
    """MAPIE 1.6: ``predict_interval`` returns predictions (n,) and limits (n, 2, levels)."""
    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(0).normal(size=6)
    np.savez("preds.npz", y_test=y, y_pred=np.zeros(6), y_pis=np.tile([[[-2.0], [2.0]]], (6, 1, 1)))
    command = "calcheck preds.npz --level 0.9"
    assert command in calcheck("evaluate", "preds.npz").refused()
    assert "intervals at 0.9" in calcheck(*command.split()[1:], "--no-null", "--resamples", "0").out
