"""The conclusion of a report: whether the uncertainties can be trusted, and what is wrong with them."""

from calcheck.conclusion.answer import conclude, unjudged_conclusion

__all__ = ["conclude", "unjudged_conclusion"]
