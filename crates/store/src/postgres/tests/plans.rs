//! The recorded schema, and the query plans of statements.

use std::fs;
use std::path::Path;

use windlass_conformance::block_on_tokio;

use super::{commit, job, migrated, outbox, run};
use crate::postgres::column::PostgresColumns;
use crate::postgres::link::Link;

const COLUMNS: &str = "SELECT format('%s.%s %s%s%s', class.relname, attribute.attname, \
     format_type(attribute.atttypid, attribute.atttypmod), \
     CASE WHEN sorting.collname = 'default' OR sorting.collname IS NULL THEN '' \
     ELSE format(' COLLATE %I', sorting.collname) END, CASE WHEN attribute.attnotnull THEN ' NOT NULL' ELSE '' END) \
     FROM pg_attribute AS attribute JOIN pg_class AS class ON class.oid = attribute.attrelid \
     LEFT JOIN pg_collation AS sorting ON sorting.oid = attribute.attcollation \
     WHERE class.relnamespace = 'public'::regnamespace AND class.relkind = 'r' AND attribute.attnum > 0 \
     ORDER BY class.relname COLLATE \"C\", attribute.attnum";
const RULES: &str = "SELECT rule FROM (SELECT format('%s: %s', class.relname, pg_get_constraintdef(rule.oid, true)) \
     FROM pg_constraint AS rule JOIN pg_class AS class ON class.oid = rule.conrelid \
     WHERE rule.connamespace = 'public'::regnamespace AND rule.contype IN ('c', 'f')) AS rules (rule) \
     ORDER BY rule COLLATE \"C\"";
const INDEXES: &str =
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname COLLATE \"C\"";
const VIEWS: &str = "SELECT format(E'VIEW %s\\n%s', viewname, definition) FROM pg_views \
     WHERE schemaname = 'public' ORDER BY viewname COLLATE \"C\"";

#[test]
fn the_schema_is_the_one_on_record() {
    let dump = block_on_tokio(async {
        let store = migrated().await;
        let db = store.link().await.unwrap();
        let mut dump = String::new();
        for sql in [COLUMNS, RULES, INDEXES, VIEWS] {
            for row in &db.ask(sql, &[]).await.unwrap() {
                dump.push_str(&PostgresColumns::of(row).value::<String>().unwrap());
                dump.push('\n');
            }
            dump.push('\n');
        }
        dump
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/postgres.sql");
    if std::env::var_os("RECORD").is_some() {
        fs::write(&path, &dump).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == dump, "the tables have changed: look at the difference after RECORD=1");
}

const FILL: &str = "INSERT INTO jobs SELECT 'default', gen_random_uuid(), 1, 'q', 'n', n % 5, 'queued', true, false, n, NULL, \
     NULL, '{}', 0, '{}', 1, NULL, '[]', CASE n % 7 WHEN 0 THEN gen_random_uuid() END, NULL, NULL, NULL, NULL, CASE n % 2 WHEN 0 THEN '' ELSE 'k' || n % 10 END, \
     NULL, NULL, n, n FROM generate_series(1, 20000) AS n; \
     INSERT INTO job_specs SELECT id, '{}', 'null' FROM jobs; ANALYZE";

/// The generic plan of a statement, made without its values, as the hot path uses it.
async fn plan(db: &Link, sql: &str) -> String {
    db.say(&format!("PREPARE asked AS {sql}")).await.unwrap();
    let n = (1..).take_while(|n| sql.contains(&format!("${n}"))).count();
    let values = if n == 0 { String::new() } else { format!("({})", vec!["NULL"; n].join(", ")) };
    let explain = format!("EXPLAIN EXECUTE asked{values}");
    let plan = db.ask_once(&explain, &[]).await.unwrap_or_else(|error| panic!("{error:?}\n{explain}"));
    db.say("DEALLOCATE asked").await.unwrap();
    let lines: Vec<String> = plan.iter().map(|row| PostgresColumns::of(row).value().unwrap()).collect();
    lines.join("\n")
}

#[test]
fn no_question_for_work_walks_through_jobs_it_does_not_want() {
    block_on_tokio(async {
        let store = migrated().await;
        let db = store.by_key().await.unwrap();
        db.say(FILL).await.unwrap();
        for sql in job::READY.iter().chain(job::KEYS) {
            let plan = plan(&db, sql).await;
            assert!(!plan.contains("Seq Scan on jobs"), "{plan}\n{sql}");
            let used = |index: &str| plan.contains(&format!("using {index}"));
            if sql.contains("run IS NOT NULL") {
                assert!(used("run_jobs_ready_by_queue") && used("run_jobs_ready_by_name"), "{plan}");
                assert!(!used("jobs_ready") && !used("jobs_by_run") && !used("keyed_jobs"), "{plan}");
            }
        }
    });
}

#[test]
fn commits_look_rows_up_by_their_keys_even_if_they_are_planned_in_an_empty_database() {
    block_on_tokio(async {
        let store = migrated().await;
        let db = store.by_key().await.unwrap();
        for sql in run::CHANGES.iter().chain(job::CHANGES).chain(commit::ALL).chain([&outbox::TO]) {
            let plan = plan(&db, sql).await;
            for whole in ["Seq Scan", "Hash Join", "Merge Join"] {
                assert!(!plan.contains(whole), "{plan}\n{sql}");
            }
        }
    });
}

/// Statistics of tables that held three rows when they were gathered last.
const FEW: &str = "INSERT INTO jobs SELECT 'default', gen_random_uuid(), 1, 'q', 'n', 0, 'queued', true, false, n, NULL, \
     NULL, '{}', 0, '{}', 1, NULL, '[]', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, n, n \
     FROM generate_series(1, 3) AS n; ANALYZE";

#[test]
fn commits_look_rows_up_by_their_ids_even_if_statistics_know_three_rows() {
    block_on_tokio(async {
        let store = migrated().await;
        let db = store.by_key().await.unwrap();
        db.say(FEW).await.unwrap();
        let heads = run::CHANGES.iter().chain(job::CHANGES).filter(|sql| sql.contains("FOR NO KEY UPDATE"));
        let heads: Vec<_> = heads.filter(|sql| sql.contains("WHERE id = ANY($1)")).collect();
        assert_eq!(heads.len(), 3);
        for sql in heads {
            let plan = plan(&db, sql).await;
            assert!(plan.contains("_pkey") && !plan.contains("using jobs_by"), "{plan}\n{sql}");
        }
    });
}
