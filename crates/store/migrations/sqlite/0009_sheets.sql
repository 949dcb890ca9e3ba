-- What transactions move is on sheets, of all accounts one movement after the other; an index, written for many sheets
-- at once, says from which of its numbers on the movements of an account are on which sheet: [[number, sheet], …]. It
-- knows the sheets up to one; those after it are looked through.
CREATE TABLE ledger_sheets (
    no INTEGER PRIMARY KEY,
    movements TEXT NOT NULL
) STRICT;
CREATE TABLE ledger_index (
    account INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    sheets TEXT NOT NULL,
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_indexed (sheet INTEGER NOT NULL) STRICT;

-- Charges that were not filed because nothing had closed them.
INSERT INTO ledger_keys (run, subject, account, seq)
SELECT coalesce(made.run, x''), iif(made.run IS NULL, made.key, substr(made.key, instr(made.key, '/') + 1)),
    accounts.no, made.seq
FROM ledger AS made JOIN accounts ON accounts.id = made.account
WHERE made.kind = 'charge' AND made.seq > accounts.filed
ON CONFLICT DO NOTHING;
DROP VIEW ledger;
INSERT INTO ledger_sheets (no, movements)
SELECT rowid, (
    SELECT json_group_array(json_array(
        account, seq + one.key, one.value ->> 0, one.value ->> 1, one.value ->> 2, one.value ->> 3, one.value ->> 4,
        one.value ->> 5
    ))
    FROM json_each(movements) AS one
)
FROM ledger_parts;
INSERT INTO ledger_index (account, seq, sheets)
SELECT account, seq, json_array(json_array(seq, rowid)) FROM ledger_parts ORDER BY account, seq;
INSERT INTO ledger_indexed (sheet) SELECT coalesce(max(no), 0) FROM ledger_sheets;
DROP TABLE ledger_parts;
ALTER TABLE accounts DROP COLUMN filed;

-- The ledger as people read it. SQLite 3.40 may read along, which has no `unhex`: bytes are found by their digits.
CREATE VIEW ledger AS
SELECT account, seq, substr(key, 1, instr(key, ':') - 1) AS kind, amount, key, held, borne_by_platform,
    iif(is_of_run, (
        SELECT CAST(group_concat(substr(
            x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff',
            16 * instr('0123456789abcdef', substr(digits, digit.value, 1))
                + instr('0123456789abcdef', substr(digits, digit.value + 1, 1)) - 16,
            1
        ), '') AS BLOB)
        FROM json_each('[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31]') AS digit
    ), NULL) AS run,
    iif(is_of_run, rtrim(rtrim(place, replace(place, '/', '')), '/'), NULL) AS node,
    balance_after, at
FROM (
    SELECT *, substr(key, 12, 32) AS digits, substr(key, instr(key, '/') + 1) AS place,
        (key GLOB 'charge:run_*/*/*' OR key GLOB 'settle:run_*/*/*' OR key GLOB 'refund:run_*/*/*')
            AND instr(key, '/') = 44 AND NOT substr(key, 12, 32) GLOB '*[^0-9a-f]*' AS is_of_run
    FROM (
        SELECT accounts.id AS account, one.value ->> 1 AS seq, one.value ->> 2 AS key, one.value ->> 3 AS amount,
            one.value ->> 4 AS held, one.value ->> 5 AS borne_by_platform, one.value ->> 6 AS balance_after,
            one.value ->> 7 AS at
        FROM ledger_sheets, json_each(ledger_sheets.movements) AS one
        JOIN accounts ON accounts.no = one.value ->> 0
    )
);
