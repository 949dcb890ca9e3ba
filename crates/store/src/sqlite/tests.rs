mod lists;

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::*;

/// All constant statements.
const ALL: [&[&str]; 35] = [
    check::ALL,
    schema::ALL,
    flow::ALL,
    foreign::ALL,
    writer_cache::ALL,
    journal::ALL,
    run::ALL,
    run::CHANGES,
    attempt::ALL,
    job::ALL,
    job::CHANGES,
    job::READY,
    job::KEYS,
    job::OUTLINES,
    depth::ALL,
    dead_letter::ALL,
    queue::ALL,
    account::ALL,
    account_batch::ALL,
    ledger::ALL,
    blob::ALL,
    outbox::ALL,
    schedule::ALL,
    log::ALL,
    service::ALL,
    audit::ALL,
    server::ALL,
    store_key::ALL,
    api_key::ALL,
    worker::ALL,
    commit::ALL,
    retain::ALL,
    bulk::ALL,
    sample::ALL,
    set_back::ALL,
];

fn migrated() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db).unwrap();
    db
}

#[test]
fn every_statement_prepares_against_the_migrated_schema() {
    let db = migrated();
    for sql in ALL.into_iter().flatten() {
        db.prepare(sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }
}

#[test]
fn the_schema_is_the_one_on_record() {
    let db = migrated();
    let mut statement =
        db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    let texts = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let dump: String = texts.map(|text| text.unwrap() + ";\n\n").collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/sqlite.sql");
    if std::env::var_os("RECORD").is_some() {
        fs::write(&path, &dump).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == dump, "the tables have changed: look at the difference after RECORD=1");
}

/// The query plan of a statement.
fn plan_of(db: &Connection, sql: &str) -> String {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    steps.map(|step| step.unwrap() + "; ").collect()
}

#[test]
fn a_list_of_tasks_computes_only_its_columns() {
    let plan = plan_of(&migrated(), "SELECT id, name, type, status FROM tasks ORDER BY created_at DESC");
    assert!(plan.contains("runs") && plan.contains("jobs") && !plan.contains("journal"), "{plan}");
}

#[test]
fn messages_to_one_receiver_are_found_without_the_rest() {
    let plan = plan_of(&migrated(), outbox::TO);
    assert!(
        plan.contains("SEARCH outbox USING INDEX outbox_by_receiver (project=? AND receiver=?)"),
        "{plan}"
    );
}

#[test]
fn the_rows_of_a_ledger_are_found_without_the_rest() {
    let db = migrated();
    for sql in ledger::ALL.iter().filter(|sql| sql.starts_with("SELECT")) {
        let plan = plan_of(&db, sql);
        let is_found = plan.contains("SEARCH ledger USING") && plan.contains("(project=? AND account=? AND ");
        assert!(is_found && !plan.contains("TEMP B-TREE"), "{plan}\n{sql}");
        assert_eq!(sql.contains("run ="), plan.contains("run=?"), "{plan}\n{sql}");
    }
}

#[test]
fn no_question_for_work_walks_through_jobs_it_does_not_want() {
    let db = migrated();
    for sql in job::READY.iter().chain(job::KEYS).filter(|sql| !sql.contains("jobs_by_wake")) {
        let plan = plan_of(&db, sql);
        // A scan reads the result of another step.
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN jobs"), "{plan}\n{sql}");
        let equal = sql.matches("priority = ").count() + sql.matches("priority < ").count();
        let used = plan.matches("priority=").count() + plan.matches("priority<").count();
        assert_eq!(equal, used, "{plan}\n{sql}");
    }
}
