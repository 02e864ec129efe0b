"""Parse the tables that examples print."""


def generator_table(printed):
    """Return the values of each (data set, metric) of examples/generators.py, in the order of its columns."""
    lines = printed.split("\n\n")[0].splitlines()[1:]
    cells = [line.split() for line in lines]
    return {(dataset, metric): [float(value.rstrip("*")) for value in values] for dataset, metric, *values in cells}
