-- Times are microseconds since 1970-01-01 UTC. Never change a migration that was released: add one.
CREATE TABLE domain (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- Number of its jobs.
    jobs INTEGER NOT NULL DEFAULT 0,
    -- Sum of their sizes.
    bytes INTEGER NOT NULL DEFAULT 0,
    -- When the index last had all jobs of the domain.
    complete_us INTEGER
) STRICT;

-- How far the stores of a domain's representatives are read.
CREATE TABLE reached (
    domain INTEGER NOT NULL,
    store TEXT NOT NULL,
    key INTEGER NOT NULL,
    -- Counts the pages; the stores with the lowest are forgotten first.
    number INTEGER NOT NULL,
    PRIMARY KEY (domain, store)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    key INTEGER PRIMARY KEY,
    domain INTEGER NOT NULL,
    id TEXT NOT NULL,
    job TEXT NOT NULL,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    queue TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    array_job TEXT NOT NULL,
    array_task TEXT NOT NULL,
    het_job TEXT NOT NULL,
    het_offset TEXT NOT NULL,
    submitted_us INTEGER,
    started_us INTEGER,
    ended_us INTEGER,
    latest_us INTEGER NOT NULL,
    -- JSON list.
    hosts TEXT NOT NULL,
    nodes INTEGER,
    tries INTEGER NOT NULL,
    -- Approximate space that it takes, in bytes.
    size INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX job_by_id ON job (id, domain);
CREATE INDEX job_by_time ON job (latest_us);
CREATE INDEX job_by_domain ON job (domain, latest_us);
CREATE INDEX job_by_user ON job (user, latest_us);
CREATE INDEX job_by_number ON job (job);
CREATE INDEX job_by_array ON job (array_job) WHERE array_job <> '';

CREATE TRIGGER job_added AFTER INSERT ON job BEGIN
    UPDATE domain SET jobs = jobs + 1, bytes = bytes + NEW.size WHERE number = NEW.domain;
END;
CREATE TRIGGER job_gone AFTER DELETE ON job BEGIN
    UPDATE domain SET jobs = jobs - 1, bytes = bytes - OLD.size WHERE number = OLD.domain;
END;
CREATE TRIGGER job_resized AFTER UPDATE OF size ON job WHEN NEW.size <> OLD.size BEGIN
    UPDATE domain SET bytes = bytes + NEW.size - OLD.size WHERE number = NEW.domain;
END;
