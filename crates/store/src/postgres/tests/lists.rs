//! Every filter of a list is answered by an index.

use uuid::Uuid;
use windlass_conformance::block_on_tokio;
use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};

use super::{audit, job, migrated, run};
use crate::audit::AuditQuery;
use crate::job::{JobQuery, JobStatus};
use crate::page::{Order, Part};
use crate::postgres::link::Link;
use crate::run::{RunQuery, RunStatus};

const FILL: &str = "INSERT INTO runs (project, id, len, flow, version, labels, account, parent_run, schedule, created_at, \
     status, round, step_count, cost_estimated, cost_actual, cost_refunded, cost_settled, updated_at, ended_at, settled_at) \
     SELECT 'default', gen_random_uuid(), 1, ('00000000-0000-0000-0000-0000000000' || lpad((n % 50)::text, 2, '0'))::uuid, \
     ('00000000-0000-0000-0000-0000000000' || lpad((n % 50)::text, 2, '0'))::uuid, '{}', \
     CASE n % 9 WHEN 0 THEN 'a' || n % 50 END, CASE n % 9 WHEN 1 THEN ('00000000-0000-0000-0000-0000000000' || lpad((n % 50)::text, 2, '0'))::uuid END, \
     CASE n % 9 WHEN 2 THEN ('00000000-0000-0000-0000-0000000000' || lpad((n % 50)::text, 2, '0'))::uuid END, n, \
     CASE WHEN n % 100 = 0 THEN 'waiting' WHEN n % 100 = 1 THEN 'failed' WHEN n % 100 = 2 THEN 'canceled' ELSE 'completed' END, \
     1, 0, 0, 0, 0, 0, n, CASE n % 100 WHEN 0 THEN NULL ELSE n END, CASE n % 100 WHEN 0 THEN NULL ELSE n END FROM generate_series(1, 20000) AS n; \
     INSERT INTO jobs SELECT 'default', gen_random_uuid(), 1, 'q' || n % 50, 'n', 0, \
     CASE WHEN n % 100 = 0 THEN 'pending' WHEN n % 100 = 1 THEN 'failed' WHEN n % 100 = 2 THEN 'canceled' ELSE 'completed' END, \
     n % 100 = 0, false, NULL, NULL, NULL, '{}', 0, '{}', 1, NULL, '[]', NULL, NULL, NULL, NULL, \
     CASE n % 9 WHEN 2 THEN ('00000000-0000-0000-0000-0000000000' || lpad((n % 50)::text, 2, '0'))::uuid END, '', \
     NULL, NULL, n, n FROM generate_series(1, 20000) AS n; \
     INSERT INTO job_specs SELECT id, '{}', 'null' FROM jobs; \
     INSERT INTO audit SELECT 'default', n, n, 'w' || n % 100, 'x' || n % 100, 's' || n % 100, '{}', '' FROM generate_series(1, 20000) AS n; \
     ANALYZE";

/// A store with many rows, for which the planner knows how they are distributed.
async fn filled() -> Link {
    let db = migrated().await.link().await.unwrap();
    db.say(FILL).await.unwrap();
    db
}

#[track_caller]
fn check(plan: &str, indexes: &[&str]) {
    for index in indexes {
        let is_used = [format!("using {index}"), format!("Bitmap Index Scan on {index}")];
        assert!(is_used.iter().any(|scan| plan.contains(scan)), "{index} is not used: {plan}");
    }
    for table in ["runs", "jobs", "audit"] {
        assert!(!plan.contains(&format!("Seq Scan on {table}")), "{plan}");
    }
}

#[test]
fn runs_are_listed_by_an_index_for_every_filter() {
    block_on_tokio(async {
        let db = filled().await;
        let flow = Some(FlowId::new(Uuid::from_u128(7)));
        let any = RunQuery::default;
        let cases: [(RunQuery, &[&str]); 9] = [
            (any(), &["runs_by_creation"]),
            (RunQuery { statuses: vec![RunStatus::Failed], ..any() }, &["runs_ended"]),
            (
                RunQuery { statuses: vec![RunStatus::Waiting, RunStatus::Canceled], ..any() },
                &["runs_open", "runs_ended"],
            ),
            (RunQuery { flow, ..any() }, &["runs_open_by_flow", "runs_ended_by_flow"]),
            (RunQuery { flow, statuses: vec![RunStatus::Canceled], ..any() }, &["runs_ended_by_flow"]),
            (RunQuery { parent: Some(RunId::new(Uuid::from_u128(7))), ..any() }, &["runs_by_parent"]),
            (
                RunQuery { schedule: Some(ScheduleId::new(Uuid::from_u128(7))), ..any() },
                &["runs_by_schedule"],
            ),
            (RunQuery { account: Some("a9".to_owned()), ..any() }, &["runs_by_account"]),
            (
                RunQuery {
                    version: Some(VersionId::new(Uuid::from_u128(7))),
                    statuses: vec![RunStatus::Completed],
                    part: Part { order: Order::LatestChange, ..Part::default() },
                    ..any()
                },
                &["runs_by_version"],
            ),
        ];
        for (query, indexes) in cases {
            check(&run::list_plan(&db, &query).await, indexes);
        }
    });
}

#[test]
fn jobs_and_the_audit_are_listed_by_an_index_for_every_filter() {
    block_on_tokio(async {
        let db = filled().await;
        let any = JobQuery::default;
        let cases: [(JobQuery, &[&str]); 5] = [
            (any(), &["jobs_by_creation"]),
            (JobQuery { queue: Some("q7".to_owned()), ..any() }, &["jobs_by_queue"]),
            (JobQuery { statuses: vec![JobStatus::Failed], ..any() }, &["jobs_ended"]),
            (JobQuery { statuses: vec![JobStatus::Pending], ..any() }, &["jobs_open"]),
            (
                JobQuery { schedule: Some(ScheduleId::new(Uuid::from_u128(7))), ..any() },
                &["jobs_by_schedule"],
            ),
        ];
        for (query, indexes) in cases {
            check(&job::list_plan(&db, &query).await, indexes);
        }
        let asked = |text: &str| Some(text.to_owned());
        let none = AuditQuery::default;
        for (query, index) in [
            (AuditQuery { who: asked("w7"), ..none() }, "audit_by_who"),
            (AuditQuery { what: asked("x7"), ..none() }, "audit_by_what"),
            (AuditQuery { subject: asked("s7"), ..none() }, "audit_by_subject"),
            (none(), "audit_pkey"),
        ] {
            check(&audit::list_plan(&db, &query).await, &[index]);
        }
    });
}
