-- This store, for those that copy its calls; and the highest key that was ever given, as keys are never given again.
CREATE TABLE identity (
    store INTEGER NOT NULL,
    last_key INTEGER NOT NULL
) STRICT;
INSERT INTO identity SELECT random(), coalesce(max(key), 0) FROM call;

-- How far the calls of other stores are copied.
CREATE TABLE copied (
    store INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    -- Counts the answers; the stores with the lowest are forgotten first.
    number INTEGER NOT NULL
) STRICT;
