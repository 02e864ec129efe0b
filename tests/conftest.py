"""A neutral environment: no forced color, 80 columns, no settings."""

import os

for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "NO_COLOR", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith("CALCHECK_")]:
    os.environ.pop(name)
os.environ["CALCHECK_NO_CONFIG"] = "1"  # ignore configuration files above this folder
os.environ["COLUMNS"] = "80"
