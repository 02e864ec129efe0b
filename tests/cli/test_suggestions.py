"""Questions about what was meant, in the messages about options, names and columns."""

import numpy as np
import pytest

from calcheck.errors import OptionError
from tests.helpers.files import columns, write


@pytest.fixture
def houses(tmp_path):
    """Return the path of predictions whose columns have names of their own."""
    y, mean, std = (columns(n=40)[name] for name in ("y", "mean", "std"))
    zone = np.array(["north", "south"] * 20)
    parts = {"price": y, "y_pred": mean, "y_std": std, "lat": mean, "lon": std, "zone": zone}
    return write(tmp_path / "houses.csv", parts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("coverage", "--level", "95"), "--level must lie strictly between 0 and 1, got 95: did you mean 0.95?"),
        (("pinball", "--levels", "0.1,90"), "--levels must lie strictly between 0 and 1, got 90: did you mean 0.9?"),
        (
            ("zms", "--confidence", "99.9"),
            "--confidence must lie strictly between 0 and 1, got 99.9: did you mean 0.999?",
        ),
        (("cce", "--fdr", "5"), "--fdr must lie strictly between 0 and 1, got 5: did you mean 0.05?"),
        (("reject", "--coverage", "90"), "above 0 and at most 1, got 90: did you mean 0.9?"),
    ],
)
def test_a_percentage_in_place_of_a_share_is_pointed_out(calcheck, preds, arguments, message):
    command, *options = arguments
    assert calcheck(command, preds, *options).refused().endswith(f"{message}\n")


@pytest.mark.parametrize("level", ["1", "0", "-1", "100", "950"])
def test_what_is_no_percentage_is_no_share_either(calcheck, preds, level):
    assert calcheck("coverage", preds, "--level", level).refused().endswith(f"between 0 and 1, got {level}\n")


def test_intervals_of_an_unknown_level_are_counted_and_judged_by_none(calcheck, tmp_path):
    limits = {"lower": np.full(100, -1.0), "upper": np.ones(100)}
    file = write(tmp_path / "conformal.csv", {"y": np.r_[np.zeros(79), np.full(21, 2.0)], **limits})
    found = calcheck("evaluate", file)
    assert "hold 79 % (70 to 87 %) of 100 targets; their level is not given" in " ".join(found.out.split())
    assert "NOT SHOWN" in found.out
    assert f"calcheck evaluate {file} --level LEVEL" in found.out.replace(" \\\n           ", " ")
    for command in ("check", "report", "recalibrate", "coverage"):
        message = calcheck(command, file).refused()
        assert f"Pass the level that was promised, as in calcheck {file} --level 0.9" in message
    for option in (
        "--pointwise=pw.csv",
        "--save-state=st.npz",
        f"--on={file}",
        "--inputs=y",
        "--weights=y",
        "--cluster=y",
    ):
        message = calcheck("evaluate", file, option).refused()
        assert "Pass the level that was promised" in message


# options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("zms", "f", "--targt", "y"), "No such option: --targt. Did you mean --target?"),
        (("cce", "f", "--lamda", "1"), "No such option: --lamda. Did you mean --lambda?"),
        (("zms", "f", "--qqqq", "1"), "No such option: --qqqq. calcheck zms --help lists the options"),
        (
            ("zms", "f", "--at-least"),
            "No such option: --at-least. calcheck zms does not take it; these commands do: coverage,",
        ),
        (
            ("mmd", "f", "f", "--replicates", "9"),
            "these commands do: evaluate, slices, recalibrate, compare, check, monitor,",
        ),
        (("coverage", "f", "--levels", "0.5"), "No such option: --levels. Did you mean --level?"),
        (("evaluate", "f", "--metric", "zms"), "No such option: --metric. Did you mean --metrics?"),
        (("zms", "f", "--config", "a"), "--config. Put this option before the command, e.g. calcheck --config FILE"),
        (("zms", "f", "--format", "jsn"), "got 'jsn'. Did you mean 'json'?"),
        (("evaluate", "f", "--new", "x"), "No such option: --new. Did you mean --on?"),
        (("evaluate", "f", "--y", "x"), "No such option: --y. Did you mean --target?"),
        (("evaluate", "f", "--y-pred", "x"), "No such option: --y-pred. Did you mean --mean?"),
        (("recalibrate", "f", "--new", "x"), "No such option: --new. Did you mean --to?"),
        (("check", "f", "--against", "a", "--baseline=b"), "--against and --baseline are the same option: pass only"),
        (("evaluate", "f", "--tolerance", "20"), "--tolerance must be at most 4, got 20: did you mean 0.2?"),
    ],
)
def test_a_wrong_option_leads_to_the_right_one(calcheck, arguments, message):
    assert message in calcheck(*arguments).refused()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("f", "--inputs", "lat", "lon"), "--inputs lat,lon"),
        (("--inputs", "lat", "lon", "f"), "--inputs lat,lon"),
        (("f", "--inputs=lat", "lon", "age", "--seed", "1"), "--inputs lat,lon,age"),
        (("f", "--metrics", "zms", "rce"), "--metrics zms,rce"),
    ],
)
def test_a_list_with_spaces_leads_to_one_with_commas(calcheck, arguments, message):
    line = calcheck("evaluate", *arguments).refused()
    assert line.endswith(f". Several values are separated by commas: {message}\n")


def test_a_list_with_spaces_before_several_files_is_noticed_too(calcheck, houses):
    for arguments in ((houses, houses, "--inputs", "lat", "lon"), ("--inputs", "lat", "lon", houses, houses)):
        line = calcheck("compare", *arguments).refused()
        assert line.endswith("there is no file lon. Several values are separated by commas: --inputs lat,lon\n")
    assert calcheck("compare", houses, "lon", "--inputs", "lat").refused().endswith("there is no file lon\n")


def test_a_second_file_is_not_taken_for_a_value_of_a_list(calcheck, houses):
    for arguments in (
        (houses, houses),
        ("--inputs", "lat", houses, houses),
        (houses, houses, "--seed", "1", "--inputs", "x"),
    ):
        assert "pass a folder or a quoted pattern" in calcheck("evaluate", *arguments).refused()


# names


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("covrage", "f"), "coverage"),
        (("Evaluate", "f"), "evaluate"),
        (("evaluate", "f", "--metrics", "zms,pits"), "pit"),
        (("evaluate", "f", "--metrics", "CRPS"), "crps"),
        (("sweep", "f", "--metric", "zsm", "--vary", "lambda=1"), "zms"),
        (("sweep", "f", "--vary", "lamda=1"), "lambda"),
        (("zms", "houses", "--dist", "guassian"), "gaussian"),
        (("zms", "houses", "--dist", "gaussian", "--param", "scael=y_std"), "scale"),
    ],
)
def test_a_misspelled_name_leads_to_the_right_one(calcheck, houses, arguments, meant):
    line = calcheck(*(houses if word == "houses" else word for word in arguments)).refused()
    assert f"Did you mean '{meant}'?" in line


def test_a_misspelled_option_of_a_metric_leads_to_the_right_one():
    import calcheck

    with pytest.raises(OptionError, match=r"cce has no option 'lamda' .*Did you mean 'lambda'\?"):
        calcheck.metric("cce", lamda=1.0)


def test_a_misspelled_argument_leads_to_the_right_one(houses):
    import calcheck

    with pytest.raises(OptionError, match=r"there is no argument 'tarjet'\. Did you mean 'target'\?"):
        calcheck.evaluate(houses, "zms", tarjet="price")
    with pytest.raises(OptionError, match=r"there is no argument 'tarjet'\. Did you mean 'target'\?"):
        calcheck.read(houses, tarjet="price")


# columns


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("zms", "--target", "Price"), "price"),
        (("zms", "--target", "price", "--std", "ystd"), "y_std"),
        (("cce", "--target", "price", "--inputs", "lat,long"), "lon"),
        (("cce", "--target", "price", "--embedding", "Lat"), "lat"),
        (("zms", "--target", "price", "--id", "Zone"), "zone"),
        (("zms", "--target", "price", "--filter", "Zone=north"), "zone"),
        (("ence", "--target", "price", "--by", "Lat"), "lat"),
        (("reject", "--target", "price", "--criteria", "Lat"), "lat"),
        (("zms", "--truth", "houses:Price"), "price"),
    ],
)
def test_a_misspelled_column_leads_to_the_right_one(calcheck, houses, arguments, meant):
    command, *options = (word.replace("houses", houses) for word in arguments)
    assert calcheck(command, houses, *options).refused().endswith(f"Did you mean '{meant}'?\n")


def test_a_pattern_has_no_similar_column(calcheck, houses):
    assert "Did you mean" not in calcheck("cce", houses, "--target", "price", "--embedding", "lat*x").refused()


@pytest.mark.parametrize(
    ("arguments", "roles"),
    [
        (("--mean", "y_pred", "--std", "y_pred"), ("mean", "std")),
        (("--var", "y_pred"), ("mean", "var")),
        (("--target", "y_pred"), ("target", "mean")),
        (("--error", "y_std", "--std", "y_std"), ("error", "std")),
        (("--dist", "laplace", "--param", "loc=price", "--param", "scale=y_std"), ("target", "param")),
        (("--samples", "[py]*"), ("target", "samples")),
    ],
)
def test_a_column_has_one_role(calcheck, houses, arguments, roles):
    target = () if {"--target", "--error"} & set(arguments) else ("--target", "price")
    line = calcheck("zms", houses, *target, *arguments).refused()
    first, second = roles
    assert (
        f"is both the {first} and the {second}. Pass --{first} and --{second} with different columns (columns:" in line
    )


def test_states_refuse_categories_of_their_own_rows(calcheck, houses, tmp_path):
    asked = ("--target", "price", "--inputs", "lat,zone", "--save-state", tmp_path / "state")
    assert "column 'zone' is text, whose categories may differ" in calcheck("cce", houses, *asked).refused()
