"""What does not read sources loads nothing that does."""

from __future__ import annotations

import pytest

from ...fresh import python


def _loaded(code: str) -> set[str]:
    return set(python(f"{code}\nimport sys\nprint(*sorted(sys.modules))").split())


def test_the_package_is_light() -> None:
    loaded = _loaded("import ascend_shims")
    assert "ascend_shims" in loaded
    assert not [m for m in loaded if m.startswith("ascend_shims.upstream")]


def test_opening_a_folder_loads_no_network() -> None:
    loaded = _loaded("import ascend_shims.upstream.sources")
    assert "ascend_shims.upstream.sources.opening" in loaded
    assert loaded.isdisjoint({"urllib3", "ssl", "pip", "rich", "torch", "vllm"})


@pytest.mark.parametrize("arguments", ["['status']", "['--help']"])
def test_status_reads_no_sources(arguments: str) -> None:
    loaded = _loaded(
        f"from ascend_shims.cli import main\nimport sys, io\n"
        f"sys.argv[1:] = {arguments}\nkept = sys.stdout\nsys.stdout = io.StringIO()\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nsys.stdout = kept"
    )
    assert "ascend_shims.cli" in loaded
    assert not [m for m in loaded if m.startswith("ascend_shims.upstream.sources")]
    assert "urllib3" not in loaded
