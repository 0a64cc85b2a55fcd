-- Times are microseconds since 1970-01-01 UTC. Never change a migration that was released: add one.
CREATE TABLE call (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    product TEXT NOT NULL,
    job TEXT NOT NULL,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    origin TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    submitted_us INTEGER,
    offered_us INTEGER,
    selected_us INTEGER,
    started_us INTEGER,
    ended_us INTEGER,
    -- The latest of the times above; the smallest integer if there is none.
    latest_us INTEGER NOT NULL,
    -- JSON lists.
    offers TEXT NOT NULL,
    hosts TEXT NOT NULL,
    aliases TEXT NOT NULL,
    code TEXT NOT NULL,
    signal TEXT NOT NULL,
    reason TEXT NOT NULL,
    tries INTEGER NOT NULL,
    events INTEGER NOT NULL
) STRICT;
CREATE INDEX call_by_id ON call (id);
CREATE INDEX call_by_time ON call (latest_us);
CREATE INDEX call_by_user ON call (user, latest_us);
CREATE INDEX call_by_name ON call (name, latest_us);
CREATE INDEX call_by_outcome ON call (outcome, latest_us);
CREATE INDEX call_by_product ON call (product, latest_us);
CREATE INDEX call_not_ended ON call (latest_us) WHERE state <> 'ended';

-- Each host, also without its domain.
CREATE TABLE call_host (
    host TEXT NOT NULL,
    latest_us INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (host, latest_us, key)
) STRICT, WITHOUT ROWID;

-- Other ids and names, with and without product and cluster; job numbers, and those of the wholes they are part of.
CREATE TABLE call_alias (
    alias TEXT NOT NULL,
    latest_us INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (alias, latest_us, key)
) STRICT, WITHOUT ROWID;
