-- Amounts of jobs, by which searches choose and sort; null if not known. Narrow, so that all can be looked at.
CREATE TABLE call_amounts (
    latest_us INTEGER NOT NULL,
    key INTEGER NOT NULL,
    cpu_time REAL,
    cpu_efficiency REAL,
    wasted REAL,
    peak_memory REAL,
    memory_efficiency REAL,
    read_bytes REAL,
    written_bytes REAL,
    ran REAL,
    waited REAL,
    cpus REAL,
    nodes REAL,
    gpus REAL,
    memory REAL,
    time_limit REAL,
    tries REAL,
    PRIMARY KEY (latest_us, key)
) STRICT, WITHOUT ROWID;

-- The highest key whose amounts have not been stored: rows from before get them step by step, the newest first.
ALTER TABLE identity ADD COLUMN without_amounts INTEGER NOT NULL DEFAULT 0;
UPDATE identity SET without_amounts = last_key;

-- Whether a call is a job is in the indexes that are counted by, so that no row is read for it.
DROP INDEX call_by_user;
DROP INDEX call_by_name;
DROP INDEX call_by_outcome;
DROP INDEX call_not_ok;
DROP INDEX call_by_account;
DROP INDEX call_by_queue;
CREATE INDEX call_by_user ON call (user, latest_us, is_job);
CREATE INDEX call_by_name ON call (name, latest_us, is_job);
CREATE INDEX call_by_outcome ON call (outcome, latest_us, is_job);
CREATE INDEX call_not_ok ON call (user, latest_us, outcome, is_job) WHERE outcome <> 'ok';
CREATE INDEX call_by_account ON call (account, latest_us, is_job) WHERE account <> '';
CREATE INDEX call_by_queue ON call (queue, latest_us, is_job) WHERE queue <> '';
