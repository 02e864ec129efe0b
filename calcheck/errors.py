"""The mistakes a user can make; everything else is a bug and keeps its traceback."""


class CalcheckError(Exception):
    """A problem that the user can solve; the message is one line and says how.

    Attributes
    ----------
    exit_code : int
        What the command line exits with.
    """

    exit_code = 2


class DataError(CalcheckError):
    """The data are missing, malformed, or not what the work at hand needs."""


class FileError(DataError):
    """A file cannot be read, or not as what it is needed for; the message names the file."""


class OptionError(CalcheckError):
    """An option has a value that it cannot have, or options contradict each other."""


class NumericalError(CalcheckError):
    """The numbers are too ill-conditioned for the precision or the solver asked for."""


class ValuesError(DataError):
    """Some values of one named array break its rule.

    Readers catch it to say which column of which file the values came from.

    Parameters
    ----------
    name : str
        The array, by its role: ``"y"``, ``"std"``, ``"rate"`` …
    problem : str
        What is wrong, starting with a verb: ``"must be positive: 3 of 20 values are not"``.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name
        self.problem = problem
