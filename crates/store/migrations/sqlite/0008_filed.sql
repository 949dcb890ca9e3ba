-- A charge that is closed soon is filed once, when it is closed. Up to this number of an account, everything is filed.
ALTER TABLE accounts ADD COLUMN filed INTEGER NOT NULL DEFAULT 0;
UPDATE accounts SET filed = revision;
