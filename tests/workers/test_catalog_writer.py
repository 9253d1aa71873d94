"""The catalog of a new home: that of the set-up where it fits the files on disk, else one that a separate process writes."""

import json
from pathlib import Path

import pytest
from small_problems import CATALOG

from leakage.settings import settings
from leakage.spec import catalog
from leakage.workers import catalog_writer
from leakage.workers.catalog_writer import CatalogWriter


@pytest.fixture
def prepared(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalog that the set-up wrote; the home has none."""
    monkeypatch.setenv("LEAKAGE_HOME", str(home / "new"))
    path = tmp_path / "share" / "catalog.json"
    monkeypatch.setattr(catalog_writer, "PREPARED_CATALOG", path)
    catalog.put(path, catalog.text(CATALOG))
    return path


def test_a_new_home_takes_the_catalog_of_the_set_up(prepared: Path) -> None:
    catalog.put(catalog.fault_file(settings().catalog), "an older fault")
    assert catalog.read(settings().catalog) is None
    writer = CatalogWriter(settings())
    assert catalog.read(settings().catalog) == CATALOG
    writer.write_and_wait()
    assert writer.process is None
    assert [path.name for path in settings().catalog.parent.iterdir()] == ["catalog.json"]


def test_what_is_in_the_way_of_the_catalog_is_no_error(prepared: Path) -> None:
    assert prepared.exists()
    settings().catalog.mkdir(parents=True)
    assert CatalogWriter(settings()).missing


def test_the_catalog_of_other_files_is_not_taken(prepared: Path) -> None:
    changed = {**json.loads(prepared.read_text()), "version": "another"}
    prepared.write_text(json.dumps(changed))
    assert CatalogWriter(settings()).missing
    assert not settings().catalog.exists()


def test_a_home_keeps_the_catalog_that_fits(prepared: Path) -> None:
    catalog.put(settings().catalog, catalog.text(CATALOG))
    before = settings().catalog.stat().st_mtime_ns
    assert not CatalogWriter(settings()).missing
    assert settings().catalog.stat().st_mtime_ns == before
