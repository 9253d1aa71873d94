"""The tables of the store."""

TABLES = """
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
