"""The conclusion of a report: whether the uncertainties can be trusted, and by how much they are off."""

from calcheck.conclusion.answer import combine, conclude, unjudged_conclusion
from calcheck.conclusion.effects import Key, key_of

__all__ = ["Key", "combine", "conclude", "key_of", "unjudged_conclusion"]
