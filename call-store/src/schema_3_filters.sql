-- The calls of a user that did not end well: few of many.
CREATE INDEX call_not_ok ON call (user, latest_us, outcome) WHERE outcome <> 'ok';

-- User and outcome of the call, which filters look at for every call of a host; null in rows from before.
ALTER TABLE call_host ADD COLUMN user TEXT;
ALTER TABLE call_host ADD COLUMN outcome TEXT;
