//! Every filter of a list is answered by an index.

use uuid::Uuid;
use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};

use super::*;
use crate::audit::AuditQuery;
use crate::job::JobStatus;
use crate::page::{LineOrder, Order};
use crate::run::RunStatus;

/// Checks that a list is read by these indexes, in their order, and not sorted as a whole.
#[track_caller]
fn check(sql: &str, indexes: &[&str]) {
    let plan = plan_of(&migrated(), sql);
    for index in indexes {
        assert!(plan.contains(&format!("USING INDEX {index}")), "{index} is not used: {plan}\n{sql}");
    }
    let is_sorted = plan.contains("USE TEMP B-TREE FOR ORDER BY");
    assert!(!is_sorted && !plan.contains("SCAN runs") && !plan.contains("SCAN jobs"), "{plan}\n{sql}");
}

fn run_query() -> RunQuery {
    RunQuery::default()
}

fn job_query() -> JobQuery {
    JobQuery::default()
}

#[test]
fn runs_are_listed_by_an_index_for_every_filter() {
    let of_runs = |query: RunQuery, indexes: &[&str]| check(&run::list_sql(&query), indexes);
    let (flow, parent) = (Some(FlowId::new(Uuid::nil())), Some(RunId::new(Uuid::nil())));
    let ended = "runs_ended (project=? AND status=?)";
    let by_flow = "runs_ended_by_flow (project=? AND flow=? AND status=?)";
    let open_by_flow = "runs_open_by_flow (project=? AND flow=?)";
    of_runs(run_query(), &["runs_by_creation (project=?)"]);
    of_runs(
        RunQuery { since: Some(Timestamp(1)), ..run_query() },
        &["runs_by_creation (project=? AND created_at>?)"],
    );
    for status in [RunStatus::Completed, RunStatus::Failed, RunStatus::Canceled] {
        of_runs(RunQuery { statuses: vec![status], ..run_query() }, &[ended]);
        of_runs(RunQuery { statuses: vec![status], flow, ..run_query() }, &[by_flow]);
    }
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_open()) {
        of_runs(RunQuery { statuses: vec![status], ..run_query() }, &["runs_open (project=?)"]);
    }
    of_runs(
        RunQuery { statuses: vec![RunStatus::Waiting, RunStatus::Failed], ..run_query() },
        &["runs_open (project=?)", ended],
    );
    of_runs(RunQuery { flow, ..run_query() }, &[open_by_flow, by_flow]);
    of_runs(RunQuery { parent, ..run_query() }, &["runs_by_parent (parent_run=?)"]);
    of_runs(
        RunQuery { schedule: Some(ScheduleId::new(Uuid::nil())), ..run_query() },
        &["runs_by_schedule (schedule=?)"],
    );
    of_runs(
        RunQuery { account: Some(String::new()), ..run_query() },
        &["runs_by_account (project=? AND account=?)"],
    );
}

#[test]
fn ended_runs_are_listed_by_their_last_change_by_an_index() {
    // Open runs are sorted: there are few, and an index by their last change would be written with every change.
    let statuses = vec![RunStatus::Completed, RunStatus::Failed, RunStatus::Canceled];
    let part = Part { order: Order::LatestChange, ..Part::default() };
    let query = RunQuery { statuses, part, ..run_query() };
    check(&run::list_sql(&query), &["runs_by_change (project=? AND status=?)"]);
    let query = RunQuery { version: Some(VersionId::new(Uuid::nil())), ..query };
    check(&run::list_sql(&query), &["runs_by_version (project=? AND version=? AND status=?)"]);
}

#[test]
fn jobs_are_listed_by_an_index_for_every_filter() {
    let of_jobs = |query: JobQuery, indexes: &[&str]| check(&job::list_sql(&query), indexes);
    let queue = Some("q".to_owned());
    of_jobs(job_query(), &["jobs_by_creation (project=?)"]);
    of_jobs(JobQuery { queue: queue.clone(), ..job_query() }, &["jobs_by_queue (project=? AND queue=?)"]);
    for status in JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Running) {
        let index =
            if status.is_open() { "jobs_open (project=?)" } else { "jobs_ended (project=? AND status=?)" };
        of_jobs(JobQuery { statuses: vec![status], ..job_query() }, &[index]);
    }
    of_jobs(
        JobQuery { schedule: Some(ScheduleId::new(Uuid::nil())), ..job_query() },
        &["jobs_by_schedule (schedule=?)"],
    );
    let dead = JobQuery { is_dead_letter: Some(true), queue, ..job_query() };
    of_jobs(dead.clone(), &["jobs_dead (project=? AND queue=?)"]);
    let fingerprint = "jobs_dead_by_fingerprint (project=? AND queue=? AND fingerprint=?)";
    of_jobs(JobQuery { fingerprint: Some(String::new()), ..dead }, &[fingerprint]);
}

#[test]
fn running_jobs_are_found_by_their_wake_ups() {
    // The jobs of one worker, or all that run, are few: they are sorted.
    for worker in [None, Some("w".to_owned())] {
        let query = JobQuery { statuses: vec![JobStatus::Running], worker, ..job_query() };
        let plan = plan_of(&migrated(), &job::list_sql(&query));
        assert!(plan.contains("USING INDEX jobs_by_wake (wake_at>?)"), "{plan}");
    }
}

#[test]
fn lists_by_name_and_the_audit_are_read_by_their_keys() {
    let db = migrated();
    let lists = queue::ALL.iter().chain(depth::ALL).chain(worker::ALL).chain(service::ALL);
    for sql in lists.filter(|sql| sql.starts_with("SELECT") && sql.contains("LIMIT ?3")) {
        let plan = plan_of(&db, sql);
        assert!(
            plan.contains("SEARCH") && !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
            "{plan}\n{sql}"
        );
    }
    for (who, what, subject, key) in [
        (true, false, false, "audit_by_who (project=? AND who=? AND seq"),
        (false, true, false, "audit_by_what (project=? AND what=? AND seq"),
        (false, false, true, "audit_by_subject (project=? AND subject=? AND seq"),
        (false, false, false, "PRIMARY KEY (project=? AND seq"),
    ] {
        let asked = |is: bool| is.then(|| "x".to_owned());
        for order in [LineOrder::Oldest, LineOrder::Newest] {
            let query = AuditQuery {
                who: asked(who),
                what: asked(what),
                subject: asked(subject),
                order,
                ..AuditQuery::default()
            };
            let plan = plan_of(&db, &audit::list_sql(&query));
            assert!(plan.contains(key) && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
