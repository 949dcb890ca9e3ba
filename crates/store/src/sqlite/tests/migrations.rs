//! Files of earlier programs.

use rusqlite::Connection;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::money::{LedgerFault, Movement};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

use crate::Refusal;
use crate::account::{LedgerQuery, Posting};
use crate::commit::Commit;
use crate::conformance::block_on;
use crate::job::JobStatus;
use crate::log::LogsOf;
use crate::run::{RunRef, RunStatus, Since};
use crate::sqlite::{Durability, Sqlite, Temporary, schema};
use crate::store::Store;

/// Two runs as the first tables kept them: an open one of two entries, one of them with money, and one that ended.
const FIRST: &str = r#"
    INSERT INTO runs (id, len, flow, version, labels, created_at, status, round, step_count, wake_at,
        cost_estimated, cost_actual, cost_refunded, cost_settled, updated_at, ended_at)
    VALUES (x'0190a1b2c3d470008000000000000001', 2, x'00', x'00', '{"a":"b"}', 5, 'waiting', 1, 1, 99, 0, 0, 0, 0, 7,
            NULL),
        (x'0190a1b2c3d470008000000000000002', 1, x'00', x'00', '{}', 6, 'failed', 1, 1, NULL, 0, 0, 0, 0, 8, 8);
    UPDATE runs SET flow = x'0190a1b2c3d470008000000000000001', version = x'0190a1b2c3d470008000000000000001';
    INSERT INTO journal (run, seq, entry) VALUES
        (x'0190a1b2c3d470008000000000000001', 1, CAST('{"v":1,"at":5,"command":"cmd_0190a1b2c3d470008000000000000011",
            "events":[{"e":"started","params":{"x":1.10,"y":"\u00e9"}},{"e":"entered","node":"a","visit":1}]}' AS BLOB)),
        (x'0190a1b2c3d470008000000000000001', 2,
            CAST('{"v":1,"at":7,"command":"cmd_0190a1b2c3d470008000000000000013","events":[{"e":"paused"}]}' AS BLOB)),
        (x'0190a1b2c3d470008000000000000002', 1,
            CAST('{"v":1,"at":6,"command":"cmd_0190a1b2c3d470008000000000000012","events":[]}' AS BLOB));
    INSERT INTO commands (id, at, run, seq, balances) VALUES
        (x'0190a1b2c3d470008000000000000011', 5, x'0190a1b2c3d470008000000000000001', 1, '{"payer":70}'),
        (x'0190a1b2c3d470008000000000000012', 6, x'0190a1b2c3d470008000000000000002', 1, NULL),
        (x'0190a1b2c3d470008000000000000013', 7, x'0190a1b2c3d470008000000000000001', 2, NULL),
        (x'0190a1b2c3d470008000000000000014', 9, NULL, NULL, NULL);
    INSERT INTO jobs (id, rev, queue, name, priority, status, is_open, is_dead_letter, due_at, state, fence, round,
        attempts_from, replays, created_at, updated_at)
    VALUES (x'0190a1b2c3d470008000000000000021', 1, 'q', 'n', 0, 'queued', 1, 0, 3, '{}', 0, '{}', 1, '[]', 3, 3);
"#;

fn command(n: u64) -> CommandId {
    format!("cmd_0190a1b2c3d4700080000000000000{n}").parse().unwrap()
}

fn run(n: u64) -> RunId {
    format!("run_0190a1b2c3d47000800000000000000{n}").parse().unwrap()
}

#[test]
fn a_file_with_the_first_tables_is_brought_up_to_date() {
    let place = Temporary::make().unwrap();
    let path = place.0.join("store.db");
    let mut db = Connection::open(&path).unwrap();
    schema::migrate_partly(&mut db, 2);
    db.execute_batch(FIRST).unwrap();
    let n_jobs =
        |db: &Connection| db.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(n_jobs(&db), 1);
    drop(db);
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    let row = block_on(store.run(RunRef::Id(run(1)))).unwrap().unwrap();
    assert_eq!(
        (row.len, row.standing.status, row.standing.wake_at.map(|at| at.0)),
        (2, RunStatus::Waiting, Some(99))
    );
    assert_eq!(row.origin.labels["a"], "b");
    let entries = block_on(store.journal(run(1), Since::Entry(0), 10)).unwrap().entries;
    let written = concat!(
        r#"{"v":1,"at":5,"command":"cmd_0190a1b2c3d470008000000000000011","#,
        r#""events":[{"e":"started","params":{"x":1.10,"y":"\u00e9"}},{"e":"entered","node":"a","visit":1}]}"#
    );
    assert_eq!(entries[0], (1, Entry::decode(written.as_bytes()).unwrap()));
    assert_eq!((entries.len(), entries[1].1.command), (2, command(13)));
    let committed = block_on(store.command(command(11))).unwrap().unwrap();
    assert_eq!((committed.run, committed.balances["payer"]), (Some((run(1), 1)), 70));
    assert_eq!(block_on(store.command(command(12))).unwrap().unwrap().run, Some((run(2), 1)));
    assert_eq!(block_on(store.command(command(14))).unwrap().unwrap().run, None);
    let depths = block_on((&store as &dyn Store).queues(Timestamp(10))).unwrap();
    assert_eq!(
        (depths.len(), depths[0].name.as_str(), depths[0].oldest_due_at),
        (1, "q", Some(Timestamp(3)))
    );
    assert_eq!(depths[0].open, [(JobStatus::Queued, 1)].into());
    drop(store);
    assert_eq!(n_jobs(&Connection::open(&path).unwrap()), 1);
}

#[test]
fn old_logs_stand_where_their_attempts_ended() {
    let place = Temporary::make().unwrap();
    let path = place.0.join("store.db");
    let mut db = Connection::open(&path).unwrap();
    schema::migrate_partly(&mut db, 2);
    db.execute_batch(FIRST).unwrap();
    db.execute_batch(
        r#"UPDATE journal SET entry = CAST('{"v":1,"at":7,"command":"cmd_0190a1b2c3d470008000000000000013",
            "events":[{"e":"paused"},{"e":"done","node":"a/b","fence":3}]}' AS BLOB) WHERE seq = 2;
        INSERT INTO logs (run, fence, at, text) VALUES
            (x'0190a1b2c3d470008000000000000001', 3, 6, 'three'), (x'0190a1b2c3d470008000000000000001', 4, 7, 'four');"#,
    )
    .unwrap();
    drop(db);
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    let of = |fence| block_on((&store as &dyn Store).logs(run(1), LogsOf::Attempt(fence))).unwrap().remove(0);
    let (three, four) = (of(3), of(4));
    assert_eq!((three.entry, three.node.as_str(), three.text.as_str()), (2, "a/b", "three"));
    assert_eq!((three.at, three.lines.len()), (Timestamp(6), 0));
    // Nobody told its end, so it is shown to whoever asks for it alone.
    assert_eq!((four.entry, four.text.as_str()), (0, "four"));
}

#[test]
fn an_old_ledger_is_read_as_it_was() {
    let place = Temporary::make().unwrap();
    let path = place.0.join("store.db");
    let mut db = Connection::open(&path).unwrap();
    schema::migrate_partly(&mut db, 6);
    db.execute_batch(
        "INSERT INTO accounts (id, name, balance, held, revision, created_at) VALUES
            ('payer', 'Payer', 75, 5, 4, 1), ('other', 'Other', 3, 0, 1, 1);
        INSERT INTO ledger (account, seq, kind, amount, key, held, borne_by_platform, run, node, balance_after, at)
        VALUES ('other', 1, 'deposit', 3, 'deposit:first', 0, 0, NULL, NULL, 3, 1),
            ('payer', 1, 'deposit', 100, 'deposit:first', 0, 0, NULL, NULL, 100, 1),
            ('payer', 2, 'charge', -60, 'charge:run_0190a1b2c3d470008000000000000001/tts/3/2', 60, 0,
                x'0190a1b2c3d470008000000000000001', 'tts/3', 40, 2),
            ('payer', 3, 'charge', -5, 'charge:job_0190a1b2c3d470008000000000000021/1', 5, 0, NULL, NULL, 35, 3),
            ('payer', 4, 'settle', 40, 'settle:run_0190a1b2c3d470008000000000000001/tts/3/2', -60, 2,
                x'0190a1b2c3d470008000000000000001', 'tts/3', 75, 4);",
    )
    .unwrap();
    let read = |db: &Connection| {
        let sql = "SELECT concat_ws('|', account, seq, kind, amount, key, held, borne_by_platform, hex(run), node, \
             balance_after, at) FROM ledger ORDER BY account, seq";
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<String>, _>>().unwrap()
    };
    let before = read(&db);
    assert_eq!(before.len(), 5);
    drop(db);
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    let query = LedgerQuery { account: "payer".to_owned(), ..LedgerQuery::default() };
    let of_run = LedgerQuery { run: Some(run(1)), ..query.clone() };
    let rows = block_on(store.ledger(of_run)).unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 4]);
    let settle = &rows[1].posting;
    assert_eq!(
        (settle.movement.held, settle.movement.borne_by_platform, rows[1].balance_after),
        (-60, 2, 75)
    );
    assert_eq!(settle.node(), Some(NodePath::from("tts/3")));
    assert_eq!(block_on(store.ledger(query)).unwrap().len(), 4);
    // What was closed stays closed, what is open can be closed, and what was paid in is not paid in again.
    let post = |n, movement| {
        let postings = vec![Posting { account: "payer".to_owned(), movement }];
        block_on(
            (&store as &dyn Store).commit_one(Commit { postings, ..Commit::new(command(n), Timestamp(9)) }),
        )
    };
    let refund = Movement::refund(&settle.movement.key.replace("settle:", "charge:"), 60);
    let refused = post(31, refund).unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. }))), "{refused}");
    let job = "charge:job_0190a1b2c3d470008000000000000021/1";
    assert_eq!(post(32, Movement::refund(job, 5)).unwrap().balances["payer"], 80);
    assert_eq!(post(33, Movement::deposit("first", 100)).unwrap().balances["payer"], 80);
    drop(store);
    let after = read(&Connection::open(&path).unwrap());
    let is_new = |row: &&String| row.starts_with("payer|5|refund|5|refund:job_");
    assert_eq!(after.iter().filter(|row| !is_new(row)).cloned().collect::<Vec<_>>(), before);
    assert_eq!(after.iter().filter(is_new).count(), 1);
}

#[test]
fn charges_that_were_open_in_a_ledger_of_parts_can_be_closed_once() {
    let place = Temporary::make().unwrap();
    let path = place.0.join("store.db");
    let mut db = Connection::open(&path).unwrap();
    schema::migrate_partly(&mut db, 8);
    // The first is filed, the second is not because nothing has closed it, and the third is closed.
    db.execute_batch(
        r#"INSERT INTO accounts (no, id, name, balance, held, revision, created_at, filed)
        VALUES (3, 'payer', 'Payer', 79, 15, 5, 1, 2);
        INSERT INTO ledger_parts (account, seq, movements) VALUES
            (3, 1, '[["deposit:first",100,0,0,100,1],["charge:run_0190a1b2c3d470008000000000000001/a/1",-5,5,0,95,1]]'),
            (3, 3, '[["charge:run_0190a1b2c3d470008000000000000001/a/2",-10,10,0,85,2],["charge:x",-6,6,0,79,2]]'),
            (3, 5, '[["settle:x",0,-6,0,79,3]]');
        INSERT INTO ledger_keys (run, subject, account, seq, closed_by) VALUES (x'', 'deposit:first', 3, 1, NULL),
            (x'0190a1b2c3d470008000000000000001', 'a/1', 3, 2, NULL), (x'', 'charge:x', 3, 4, 5);"#,
    )
    .unwrap();
    drop(db);
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    let query = LedgerQuery { account: "payer".to_owned(), ..LedgerQuery::default() };
    let seqs = |query| block_on(store.ledger(query)).unwrap().iter().map(|row| row.seq).collect::<Vec<_>>();
    assert_eq!(seqs(query.clone()), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(LedgerQuery { run: Some(run(1)), ..query.clone() }), [2, 3]);
    let post = |n, movement| {
        let postings = vec![Posting { account: "payer".to_owned(), movement }];
        let commit = Commit { postings, ..Commit::new(command(n), Timestamp(9)) };
        block_on((&store as &dyn Store).commit_one(commit)).map(|committed| committed.balances["payer"])
    };
    let charge = |visit| format!("charge:run_0190a1b2c3d470008000000000000001/a/{visit}");
    assert_eq!(post(31, Movement::refund(&charge(1), 5)).unwrap(), 84);
    assert_eq!(post(32, Movement::refund(&charge(2), 10)).unwrap(), 94);
    for (n, closing) in [(33, Movement::settle(&charge(2), 10, 1)), (34, Movement::refund("charge:x", 6))] {
        let refused = post(n, closing).unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. }))), "{refused}");
    }
    assert_eq!(post(35, Movement::charge(charge(2), 10)).unwrap(), 94);
    assert_eq!(seqs(query), [1, 2, 3, 4, 5, 6, 7]);
}
