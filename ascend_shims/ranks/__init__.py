"""Whether all ranks of an engine carry the same patches, and who does not.

Nothing here knows of the engine: what a rank carries is told to it.
"""

from __future__ import annotations
