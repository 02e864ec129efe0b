"""The function for Python that compares two samples."""

from __future__ import annotations

from typing import Unpack

from calcheck.api import arguments
from calcheck.api.arguments import AnyMetric, Data, Options
from calcheck.api.notebook_report import InteractiveReport
from calcheck.api.requests import KeywordRequest
from calcheck.errors import OptionError
from calcheck.models.two_samples import metric_of_samples
from calcheck.render.document import report_document
from calcheck.studies.two_samples.study import run as compare_two_samples


@arguments.public
def compare_samples(
    first: Data,
    second: Data,
    metric: str | AnyMetric = "mcmd",
    *,
    grid: int | None = None,
    at: Data = None,
    **options: Unpack[Options],
) -> InteractiveReport:
    """Return a distance between two samples of inputs and targets, whose inputs may differ.

    Parameters
    ----------
    first, second : path, DataFrame, table, Source or Predictions
        Samples with targets and inputs, as for :func:`calcheck.read`; predictions are ignored. Keywords name the
        columns of both.
    metric : str or Metric
        ``"mcmd"`` compares the distributions of targets given the inputs at each input, ``"mmd"`` those of targets, or
        of inputs and targets (``calcheck.metric("mmd", joint=True)``). ``"jmmd"``, ``"cmmd"`` and ``"fid"`` compare
        data with draws of a model.
    grid : int, optional
        Number of equally spaced evaluation points for ``"mcmd"`` and a single input (default 200); for several inputs,
        the evaluation points are the inputs of the first sample.
    at : path, DataFrame, table or array-like (m, d), optional
        Evaluation points for ``"mcmd"``.
    **options
        Keywords of the run, where ``replicates`` is the number of permutations (default 199), and of
        :func:`calcheck.read`: ``inputs=["x"]``, ``target="y"``.

    Returns
    -------
    InteractiveReport
        One result. ``rows("mcmd")`` has the distance at each evaluation point.

    Raises
    ------
    DataError
        The data cannot be read, or the samples have different numbers of inputs or targets.
    OptionError
        The metric does not compare two samples, or a value is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(2, 100))
    >>> first = {"x": x[0], "y": rng.normal(x[0])}
    >>> second = {"x": x[1], "y": rng.normal(x[1] + 2)}
    >>> result = compare_samples(first, second, inputs=["x"]).results[0]
    >>> round(result.value, 2), result.p_value
    (0.74, 0.005)
    """
    compared = metric_of_samples(arguments.named_metric(metric))
    if grid is not None and not compared.info.conditional:
        raise OptionError(f"grid sets evaluation points, which {compared.info.name} does not have. Omit it")
    request = KeywordRequest({"a": first, "b": second, "at": at, "grid": grid, "options": options}, Options)
    found = compare_two_samples(request, compared)
    return InteractiveReport.from_report(found, request.rows, screen=report_document)
