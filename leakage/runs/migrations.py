"""The store's schema, step by step: every change that a store of an earlier version needs, numbered from 1.

`PRAGMA user_version` holds the number of the last step that a file has seen. A new file sees all of them, so there is no second place
where the tables are written down. To change the schema, write a function here, append it to MIGRATIONS,
and test it beside those in tests/runs/test_migrations.py; `Run` in rows.py gets a field for a new column that is to be read.

A step is never edited once a release has it, and uses nothing that may change later: no model of an event, no table of another file.
"""

import hashlib
import json
import re
import time
from pathlib import Path

from leakage.runs.connections import Connection, Migration

TABLES_OF_0_1_0 = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, grp TEXT, kind TEXT NOT NULL, digest TEXT NOT NULL, version TEXT NOT NULL,
    experiment TEXT NOT NULL, shareable INTEGER NOT NULL, estimate REAL, status TEXT NOT NULL, message TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL, started REAL, finished REAL, heartbeat REAL, worker TEXT, cancelled REAL, result TEXT);
CREATE INDEX runs_by_status ON runs (status, created);
CREATE INDEX runs_by_digest ON runs (digest);
CREATE TABLE holders (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, owner TEXT NOT NULL, since REAL NOT NULL, PRIMARY KEY (run, owner));
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_by_run ON events (run, seq);
CREATE TABLE frames (seq INTEGER PRIMARY KEY REFERENCES events ON DELETE CASCADE, run TEXT NOT NULL, png BLOB NOT NULL);
CREATE INDEX frames_by_run ON frames (run, seq);
CREATE TABLE files (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name));
CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT NOT NULL);
"""
WEIGHED = (("frames", "png"), ("files", "data"), ("events", "body"))


def create_tables(db: Connection) -> None:
    """Create the tables of version 0.1.0 (migration 1)."""
    for statement in TABLES_OF_0_1_0.split(";\n"):
        db.execute(statement)


def replace_numbers_that_are_not_finite(db: Connection) -> None:
    """Write null for every NaN and infinity (migration 2). Version 0.1.0 wrote them as Python does, which no browser can read."""
    for table, key, column in (("runs", "id", "result"), ("events", "seq", "body"), ("notes", "name", "body")):
        rows = db.execute(f"SELECT {key}, {column} FROM {table} WHERE {column} LIKE '%NaN%' OR {column} LIKE '%Infinity%'").fetchall()
        for name, text in rows:
            body = json.loads(text, parse_constant=lambda _: None)
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (json.dumps(body, allow_nan=False), name))


def complete_introductions(db: Connection) -> None:
    """Add labels_granted, weights and batch_norm to the first event of every attack that 0.1.0 stored (migration 3).

    0.1.0 had no trained weights, and of its models the ConvNet alone had BatchNorm.
    """
    rows = db.execute(
        "SELECT seq, body, experiment FROM events JOIN runs ON runs.id = events.run WHERE events.kind = 'meta' AND runs.kind = 'attack'"
    ).fetchall()
    for seq, text, experiment in rows:
        body, asked = json.loads(text), json.loads(experiment)
        lacking = {
            "labels_granted": asked["assume"]["labels"],
            "weights": "untrained",
            "batch_norm": asked["model"]["id"] == "convnet",
        }
        if lacking.keys() - body.keys():
            db.execute("UPDATE events SET body = ? WHERE seq = ?", (json.dumps({**lacking, **body}), seq))


def rename_verdicts(db: Connection) -> None:
    """Replace the words of stored verdicts by those of 0.3.0 (migration 4): "not recognisable", which sounds safe, is no longer used."""
    words = {"recognisable": "recognizable", "partly recognisable": "partly", "not recognisable": "not shown by this attack"}
    for table, key, column in (("runs", "id", "result"), ("events", "seq", "body")):
        rows = db.execute(f"SELECT {key}, {column} FROM {table} WHERE {column} LIKE '%recognisable%'").fetchall()
        for name, text in rows:
            body = json.loads(text)
            if (body.get("verdict") or {}).get("word") in words:
                body["verdict"]["word"] = words[body["verdict"]["word"]]
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (json.dumps(body, allow_nan=False), name))


def let_owners_name_and_pin(db: Connection) -> None:
    """Add the names that owners give to runs, and their pins (migration 5)."""
    db.execute("ALTER TABLE holders ADD COLUMN name TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE holders ADD COLUMN pinned REAL")


def hash_owner_cookies(db: Connection) -> None:
    """Replace every owner's cookie by its SHA-256, as `owner_of` in owners.py computes it (migration 6). Other owners stay."""
    (before,) = db.execute("PRAGMA secure_delete").fetchone()
    db.execute("PRAGMA secure_delete = ON")  # what is overwritten here does not stay in the file's unused bytes
    for table in ("runs", "holders"):
        for (owner,) in db.execute(f"SELECT DISTINCT owner FROM {table} WHERE owner LIKE 'browser %'").fetchall():
            kept = hashlib.sha256(owner.removeprefix("browser ").encode()).hexdigest()
            db.execute(f"UPDATE {table} SET owner = ? WHERE owner = ?", (f"browser {kept}", owner))
    db.execute(f"PRAGMA secure_delete = {before}")


def let_a_full_store_make_room(db: Connection) -> None:
    """Add columns by which a full store makes room: views, sizes, owners seen, removed runs (migration 7)."""
    for column in ("viewed REAL", "thinned REAL", "bytes INTEGER NOT NULL DEFAULT 0"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    sums = (f"(SELECT COALESCE(SUM(LENGTH({what})), 0) FROM {table} WHERE run = id)" for table, what in WEIGHED)
    db.execute(f"UPDATE runs SET bytes = {' + '.join(sums)} WHERE status NOT IN ('queued', 'running')")
    db.execute("CREATE INDEX runs_by_end ON runs (finished)")
    db.execute("CREATE INDEX runs_by_owner ON runs (owner, started)")
    db.execute("CREATE TABLE removed (run TEXT PRIMARY KEY, at REAL NOT NULL, why TEXT NOT NULL, experiment TEXT)")
    db.execute("CREATE TABLE owners (owner TEXT PRIMARY KEY, seen REAL NOT NULL)")
    db.execute("INSERT INTO owners SELECT DISTINCT owner, ? FROM holders", (time.time(),))


def let_codes_delete_uploads(db: Connection) -> None:
    """Add the hashes of codes that delete an upload, with its owner (migration 8)."""
    db.execute("CREATE TABLE upload_codes (hash TEXT PRIMARY KEY, owner TEXT NOT NULL, upload TEXT NOT NULL, created REAL NOT NULL)")


def let_runs_yield(db: Connection) -> None:
    """Add the time since which a run is asked to let another owner go first (migration 9)."""
    db.execute("ALTER TABLE runs ADD COLUMN yields REAL")


def count_trained_models(db: Connection) -> None:
    """Add the folder of what a run has trained, and its size (migration 10)."""
    db.execute("ALTER TABLE runs ADD COLUMN model_folder TEXT")
    db.execute("CREATE TABLE models (folder TEXT PRIMARY KEY, bytes INTEGER NOT NULL)")
    home = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent
    for run, kind, text in db.execute("SELECT id, kind, experiment FROM runs WHERE kind IN ('train', 'invert')").fetchall():
        asked = json.loads(text)
        whole = re.sub(r'"max_seconds":\d+', '"max_seconds":3600', text) if kind == "train" else text
        behind = [] if kind == "train" else ["-".join(part["id"] for part in asked["defenses"]) or "plain"]
        name = "-".join([asked["model"]["id"], asked["data"], *behind, hashlib.sha256(whole.encode()).hexdigest()[:8]])
        folder = f"{'checkpoints' if kind == 'train' else 'inverters'}/{name}"
        size = sum(path.stat().st_size for path in (home / folder).glob("*"))
        db.execute("UPDATE runs SET model_folder = ? WHERE id = ?", (folder, run))
        db.execute("INSERT OR IGNORE INTO models (folder, bytes) VALUES (?, ?)", (folder, size))


MIGRATIONS: tuple[Migration, ...] = (
    create_tables,
    replace_numbers_that_are_not_finite,
    complete_introductions,
    rename_verdicts,
    let_owners_name_and_pin,
    hash_owner_cookies,
    let_a_full_store_make_room,
    let_codes_delete_uploads,
    let_runs_yield,
    count_trained_models,
)
