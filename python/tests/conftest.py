"""Settings of all tests: models are named by ``models``; where the variable ``CI`` is set, hypothesis draws the same inputs
each time."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

try:
    from hypothesis import settings
except ImportError:
    pass
else:
    settings.register_profile("ci", derandomize=True)
    if os.environ.get("CI"):
        settings.load_profile("ci")
