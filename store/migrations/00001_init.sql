-- SQLite and PostgreSQL accept all types: BIGINT for counts and for times
-- (milliseconds since the Unix epoch, UTC), BYTEA for bytes, BOOLEAN,
-- DOUBLE PRECISION, TEXT. An unknown time, price or cost is NULL, never 0.

-- +goose Up

-- One row with the store's id.
CREATE TABLE identity (
    id    BIGINT NOT NULL PRIMARY KEY,
    store TEXT   NOT NULL                        -- random, created once
);

-- The latest marks. Redis stores one of them. Another store, an empty store and an
-- older or diverged copy are detected, because they lack this mark.
CREATE TABLE mark (
    seq   BIGINT NOT NULL PRIMARY KEY,
    token TEXT   NOT NULL                        -- random
);

-- One row per key: its current status.
CREATE TABLE task (
    key          TEXT    NOT NULL PRIMARY KEY,
    path         TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    payload      BYTEA,                          -- may hold a signed URL
    generation   BIGINT  NOT NULL DEFAULT 0,
    finished     BOOLEAN NOT NULL DEFAULT FALSE,
    verdict      TEXT    NOT NULL DEFAULT '',    -- of the last attempt; '' before the first one
    outcome      TEXT    NOT NULL DEFAULT '',
    reason       TEXT    NOT NULL DEFAULT '',
    final        BOOLEAN NOT NULL DEFAULT FALSE, -- tombstone: only force reopens the task
    created_at   BIGINT  NOT NULL,
    attempted_at BIGINT,                         -- last attempt of this generation
    updated_at   BIGINT  NOT NULL,
    finished_at  BIGINT
);
CREATE INDEX task_by_verdict ON task (verdict, outcome, updated_at);
CREATE INDEX task_by_age ON task (updated_at);

-- One row per enqueued input; many may share one task.
CREATE TABLE submission (
    id          TEXT    NOT NULL PRIMARY KEY,
    batch       TEXT    NOT NULL,
    key         TEXT    NOT NULL REFERENCES task (key),
    path        TEXT    NOT NULL,
    queue       TEXT    NOT NULL,
    external_id TEXT    NOT NULL DEFAULT '',
    name        TEXT    NOT NULL DEFAULT '',
    metadata    TEXT,                            -- JSON
    cached      BOOLEAN NOT NULL DEFAULT FALSE,  -- needed no call; cost 0
    created_at  BIGINT  NOT NULL
);
CREATE INDEX submission_by_batch ON submission (batch, created_at, id);
CREATE INDEX submission_by_external_id ON submission (external_id) WHERE external_id <> '';
CREATE INDEX submission_by_key ON submission (key);

-- One row per finished generation of a key: the history of verdicts.
CREATE TABLE result (
    key         TEXT    NOT NULL REFERENCES task (key),
    generation  BIGINT  NOT NULL,
    attempt_id  TEXT    NOT NULL DEFAULT '',     -- attempt of the verdict; '' without a call
    verdict     TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    reason      TEXT    NOT NULL DEFAULT '',
    final       BOOLEAN NOT NULL DEFAULT FALSE,
    body        TEXT,                            -- JSON; NULL without a result
    finished_at BIGINT  NOT NULL,
    PRIMARY KEY (key, generation)
);

-- One row per call to AudD, with its cost. The table has no foreign key, because
-- a call row stays when its task is deleted.
CREATE TABLE call (
    attempt_id      TEXT    NOT NULL PRIMARY KEY,
    key             TEXT    NOT NULL,
    generation      BIGINT  NOT NULL,
    source          TEXT    NOT NULL,
    path            TEXT    NOT NULL,
    queue           TEXT    NOT NULL,
    outcome         TEXT    NOT NULL,
    verdict         TEXT    NOT NULL,
    code            BIGINT  NOT NULL DEFAULT 0,  -- AudD's error code, 0 = none
    http_status     BIGINT  NOT NULL DEFAULT 0,  -- 0 = no response
    request_id      TEXT    NOT NULL DEFAULT '',
    phase           TEXT    NOT NULL DEFAULT '',
    latency_us      BIGINT  NOT NULL DEFAULT 0,  -- microseconds
    units           BIGINT  NOT NULL DEFAULT 0,
    unit_basis      TEXT    NOT NULL DEFAULT '', -- measured, estimated, unavailable
    possibly_billed BOOLEAN NOT NULL DEFAULT FALSE,
    price           DOUBLE PRECISION,            -- per unit
    cost            DOUBLE PRECISION,
    reason          TEXT    NOT NULL DEFAULT '',
    at              BIGINT  NOT NULL
);
CREATE INDEX call_by_key ON call (key, at);
CREATE INDEX call_by_time ON call (at, source, path, units);

-- One row that Ping rewrites to check that the store is writable.
CREATE TABLE probe (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE probe;
DROP TABLE call;
DROP TABLE result;
DROP TABLE submission;
DROP TABLE task;
DROP TABLE mark;
DROP TABLE identity;
