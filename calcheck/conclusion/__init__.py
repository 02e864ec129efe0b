"""The conclusion of a report: whether the uncertainties can be trusted, and by how much they are off."""

from calcheck.conclusion.answer import Key, combine, conclude, key_of, unjudged_conclusion

__all__ = ["Key", "combine", "conclude", "key_of", "unjudged_conclusion"]
