-- The upload ledger (package idempotency). Times are milliseconds since the Unix
-- epoch, UTC. A time that is not known yet is NULL.

-- +goose Up

-- One row with the ledger's id and counters. Every transaction that changes the
-- ledger updates this row first, which serializes all changes.
CREATE TABLE upload_ledger (
    id      BIGINT NOT NULL PRIMARY KEY,
    ledger  TEXT   NOT NULL,                     -- random, created once
    seq     BIGINT NOT NULL,                     -- number of the last latch or adoption
    token   TEXT   NOT NULL,                     -- its attempt id or adoption id
    audits  BIGINT NOT NULL                      -- number of the last audit row
);

-- One row per claimed or sent key, with the generation that may send next.
CREATE TABLE upload_key (
    key        TEXT   NOT NULL PRIMARY KEY,
    source     TEXT   NOT NULL,
    audio_id   BIGINT NOT NULL,
    sha256     TEXT   NOT NULL DEFAULT '',       -- '' for URLs
    generation BIGINT NOT NULL DEFAULT 0,
    since      BIGINT NOT NULL
);
CREATE INDEX upload_key_by_slot ON upload_key (source, audio_id);

-- One row per send: (key, generation) is the latch.
CREATE TABLE upload (
    key          TEXT   NOT NULL REFERENCES upload_key (key),
    generation   BIGINT NOT NULL,
    attempt_id   TEXT   NOT NULL UNIQUE,         -- only this attempt may conclude the send
    seq          BIGINT NOT NULL UNIQUE,
    source       TEXT   NOT NULL,
    audio_id     BIGINT NOT NULL,
    sha256       TEXT   NOT NULL DEFAULT '',
    state        TEXT   NOT NULL,                -- sent, settled, rejected, uncertain, released
    sent_at      BIGINT NOT NULL,
    timeout_ms   BIGINT NOT NULL,                -- timeout of the call
    ended_at     BIGINT,                         -- when the send was concluded
    outcome      TEXT   NOT NULL DEFAULT '',
    reason       TEXT   NOT NULL DEFAULT '',
    request_id   TEXT   NOT NULL DEFAULT '',
    verify       TEXT   NOT NULL DEFAULT 'hold', -- if uncertain: hold, recognize
    verify_tries BIGINT NOT NULL DEFAULT 0,
    verify_at    BIGINT,                         -- last verification
    PRIMARY KEY (key, generation)
);
CREATE INDEX upload_by_slot ON upload (source, audio_id);
CREATE INDEX upload_by_state ON upload (state, sent_at);

-- The owner of each slot of an account's catalog.
CREATE TABLE upload_slot (
    source   TEXT   NOT NULL,
    audio_id BIGINT NOT NULL,
    key      TEXT   NOT NULL,
    sha256   TEXT   NOT NULL DEFAULT '',
    since    BIGINT NOT NULL,
    PRIMARY KEY (source, audio_id)
);
CREATE INDEX upload_slot_by_content ON upload_slot (source, sha256);

-- The next free audio_id per source.
CREATE TABLE upload_counter (
    source  TEXT   NOT NULL PRIMARY KEY,
    next_id BIGINT NOT NULL
);

-- Operator actions, and reports that arrived too late to change a send.
CREATE TABLE upload_audit (
    n          BIGINT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    who        TEXT   NOT NULL,
    what       TEXT   NOT NULL,
    why        TEXT   NOT NULL,
    key        TEXT   NOT NULL,                  -- '' for the whole ledger
    generation BIGINT NOT NULL
);
CREATE INDEX upload_audit_by_key ON upload_audit (key, n);

-- One row per restored or new ledger that an operator accepted in place of the
-- remembered ledger.
CREATE TABLE upload_adoption (
    seq               BIGINT NOT NULL PRIMARY KEY,
    token             TEXT   NOT NULL,
    remembered_ledger TEXT   NOT NULL,
    remembered_seq    BIGINT NOT NULL,
    remembered_token  TEXT   NOT NULL
);

-- +goose Down
DROP TABLE upload_adoption;
DROP TABLE upload_audit;
DROP TABLE upload_counter;
DROP TABLE upload_slot;
DROP TABLE upload;
DROP TABLE upload_key;
DROP TABLE upload_ledger;
