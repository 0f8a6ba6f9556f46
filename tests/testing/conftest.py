"""The fixture `project`."""

from __future__ import annotations

import pytest

from .project import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(pytester, monkeypatch)
