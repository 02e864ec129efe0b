"""Reading of prediction files, tables and arrays."""

# Readers are imported lazily, so that `calcheck --help` starts quickly.

from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

from calcheck.errors import DataError, OptionError, keyword_messages

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.io.python_arguments import ColumnArguments

__all__ = ["read"]


@keyword_messages()
def read(
    data: str | PathLike[str] | Any = None, *, input_format: str | None = None, **columns: "Unpack[ColumnArguments]"
) -> "FileSource":
    """Open predictions: a file, a DataFrame, another table, or arrays.

    Parameters
    ----------
    data : path, list of paths, DataFrame, table or mapping, optional
        * A file, a folder, or a pattern with ``*``, ``**``, ``?`` or ``[…]``; local, or in an object store
          (``s3://``, ``gs://``). ``"-"`` for standard input. Several in a list are read as one table.
        * A pandas DataFrame with one row per prediction. Cells may be lists or arrays. A named index becomes a column,
          and the row keys (``id``) if it has one level and no duplicates; an unnamed index is ignored.
        * A table of pyarrow, polars or another library with Arrow's interface, or a dict of arrays.
        * None, if all columns are given as arrays.
    input_format : str, optional
        The format of a file, if its name does not imply it.
    y : array-like (n,) or (n, t), optional
        Targets, in place of the column ``target``; t columns for a multivariate model.
    target : str or list of str, optional
        Column of targets, or several.
    mean, std : str or array-like (n,) or (n, t), optional
        Predictive means and standard deviations > 0. ``var``, ``log_std`` or ``log_var`` take the place of ``std``;
        ``error`` (y - mean) that of targets and means.
    samples : str or array-like (n, m) or (n, m, t), optional
        m draws per row; also (m, n), if there are n targets and not m.
    quantiles : str, list of str, or mapping of array-like (n,), optional
        Quantiles by level: ``{0.05: low, 0.5: median, 0.95: high}``.
    lower, upper : str, list of str, or array-like (n,) or (n, k), optional
        Limits of prediction intervals at k levels; or both together as ``intervals``, (n, 2, k). ``mean`` is then a
        point prediction, and may be absent.
    level : float or list of float, optional
        Levels of prediction intervals, in (0, 1), if the column names do not state them.
    dist, param : str, mapping, optional
        Family, and its parameters by name, as columns or arrays: ``dist="poisson", param={"rate": rate}``.
    embedding : str or array-like (n, d), optional
        Embedding of the inputs; also a file.
    inputs : list of str, or array-like (n, d), optional
        Low-dimensional inputs, instead of an embedding.
    id : str or array-like (n,), optional
        Row keys.
    nan_policy : {"raise", "omit"}, optional
        Rows with missing numbers (NaN, None, ``pd.NA``): raise an error (default), or omit them and report how many.
    **columns
        Further fields of :class:`calcheck.io.column_names.ColumnOptions`: ``truth``, ``join_on``, ``model``,
        ``filter`` (also as a mapping), ``only`` (one of several targets), ``error_dist``, ``min_std``, ``crossing``
        (``"sort"`` sorts quantiles that cross); and how targets were observed: ``target_std``, ``clip=(low, high)``,
        ``rounded``.

    Returns
    -------
    FileSource
        A source of predictions that can be read repeatedly; rows are read when they are needed.

    Raises
    ------
    DataError
        The file does not exist or is unsafe to load, two columns have the same name, or arrays differ in length.
    OptionError
        A keyword is unknown, or keywords contradict each other.

    Notes
    -----
    Arrays are those of NumPy, torch (on any device, also with gradient or in bfloat16), pandas or lists. An array takes
    the place of the column with the name of its role: ``read(frame, std=2 * frame["std"])``. Rows are matched by
    position; a Series with another index than the frame is refused. Duplicate column names are refused; a MultiIndex
    of columns is read as the text of its tuples, as in CSV files.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"y": [1.0, 2.0], "mean": [1.1, 1.8], "std": [0.1, 0.2], "lat": [48.1, 52.5]})
    >>> read(frame, inputs=["lat"]).predictions().inputs().tolist()
    [[48.1], [52.5]]
    >>> read(y=[1.0, 2.0], samples=[[0.9, 1.1, 1.2], [1.8, 2.1, 1.7]]).predictions().predictive
    Samples(draws=array([[0.9, 1.1, 1.2],
           [1.8, 2.1, 1.7]]))
    """
    from calcheck.io.column_names import ColumnOptions
    from calcheck.io.file_source import FileSource
    from calcheck.io.files import resolve, resolve_all

    listed = data if isinstance(data, (list, tuple)) else []
    paths = [str(each) for each in listed if isinstance(each, (str, PathLike))]
    paths = paths if len(paths) == len(listed) else []
    if not paths and not isinstance(data, (str, PathLike)):
        from calcheck.io.dataframes import TableInMemory, is_table
        from calcheck.io.python_arguments import Arguments

        given = Arguments(columns)
        if data is not None and not is_table(data):
            msg = f"predictions are a path, a DataFrame, a table, or arrays by keyword (y=…), got {type(data).__name__}"
            raise DataError(msg)
        table = TableInMemory.from_data(data, given.arrays)
        return FileSource(table, given.options(table.id))
    options = ColumnOptions()
    if columns:
        from calcheck.io.python_arguments import Arguments

        given = Arguments(columns)
        if given.arrays:
            raise OptionError(
                f"{next(iter(given.arrays))} is an array, but the other columns are in a file. Pass a DataFrame and"
                " arrays, or a file and column names"
            )
        options = given.options()
    file = resolve_all(paths, input_format) if paths else resolve(str(data), input_format)
    return FileSource(file, options)
