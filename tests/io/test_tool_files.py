"""Files that tools wrote themselves: what is read without any option, and the command that is proposed otherwise."""

import re
import shlex

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
