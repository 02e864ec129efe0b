"""Questions about what was meant, in the messages about options, names and columns."""

import pytest


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
