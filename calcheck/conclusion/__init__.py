"""The conclusion of a report: whether the uncertainties can be trusted, and by how much they are off."""

from calcheck.conclusion.answer import conclude, unjudged_conclusion
from calcheck.conclusion.effects import Key, key_of

__all__ = ["Key", "conclude", "key_of", "unjudged_conclusion"]
