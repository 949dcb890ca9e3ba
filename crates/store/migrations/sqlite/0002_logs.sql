-- What those who were called wrote while they worked; the last word counts. Deleted with its run.

CREATE TABLE logs (
    run BLOB NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, fence)
) STRICT;
