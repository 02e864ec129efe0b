"""The papers' studies: how metrics move as something else does."""
