"""`python -m ascend_shims` is `shims`."""

import sys

from .cli import main

sys.exit(main())
