-- What logs state of a job besides its course: the details whole, and what filters look at. Rows from before have
-- no details, and all are held to be jobs.
ALTER TABLE call ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN queue TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN is_job INTEGER NOT NULL DEFAULT 1;
ALTER TABLE call ADD COLUMN details BLOB;
CREATE INDEX call_by_account ON call (account, latest_us) WHERE account <> '';
CREATE INDEX call_by_queue ON call (queue, latest_us) WHERE queue <> '';
