//! The table of recorded changes, for all surfaces. A test finds every route in this table or in a list of exceptions.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::Query;
use axum::http::{Method, Uri};
use windlass_sdk::contract::DryRunQuery;

use crate::scheduler;

/// A change that is recorded.
#[derive(Debug)]
pub(crate) struct AuditedChange {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The name of the change.
    pub(crate) what: &'static str,
    pub(crate) subject: AuditSubject,
    pub(crate) when: AuditCondition,
}

/// The place of a change's subject in the request. Field names have no capitals and underscores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AuditSubject {
    /// In the path, under this name.
    Path(&'static str),
    /// In a field of the body, or of the query where a surface takes that for the same.
    Body(&'static str),
    /// The same field, with an id in the spelling of another surface; the function translates it.
    ForeignId(&'static str, fn(&str) -> String),
    /// In the answer: see [`super::CreatedId`].
    Made,
    /// The server as a whole.
    Server,
}

/// The condition under which a request is a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditCondition {
    Always,
    /// Unless it is a dry run.
    NotDryRun,
    /// If the body asks for repairs.
    Repairs,
}

macro_rules! audited_changes {
    (@when) => { $crate::audit::AuditCondition::Always };
    (@when $when:ident) => { $crate::audit::AuditCondition::$when };
    ($($method:literal $path:literal $what:literal $subject:expr $(, $when:ident)?;)*) => {
        &[$($crate::audit::AuditedChange {
            method: $method,
            path: $path,
            what: $what,
            subject: $subject,
            when: audited_changes!(@when $($when)?),
        }),*]
    };
}

pub(crate) use audited_changes;

use AuditSubject::{Body, Made, Path, Server};

/// Recorded changes of the native and the queue platform surface.
const NATIVE: &[AuditedChange] = audited_changes! {
    "POST" "/api/v1/flows" "flow.create" Body("name");
    "POST" "/api/v1/examples" "flow.examples" Server;
    "POST" "/api/v1/flows/{flow}/versions" "flow.publish" Path("flow");
    "POST" "/api/v1/flows/{flow}/instantiate" "flow.instantiate" Body("name");
    "POST" "/api/v1/runs/{id}/cancel" "run.cancel" Path("id");
    "POST" "/api/v1/runs/{id}/pause" "run.pause" Path("id");
    "POST" "/api/v1/runs/{id}/resume" "run.resume" Path("id");
    "POST" "/api/v1/runs/{id}/step" "run.step" Path("id");
    "POST" "/api/v1/runs/{id}/retry" "run.retry" Path("id"), NotDryRun;
    "POST" "/api/v1/runs/{id}/rerun" "run.rerun" Path("id"), NotDryRun;
    "POST" "/api/v1/runs/{id}/continue" "run.continue" Path("id");
    "POST" "/api/v1/runs/{id}/signal" "run.signal" Path("id");
    "POST" "/api/v1/runs/{id}/decide" "run.decide" Path("id");
    "POST" "/api/v1/runs/{id}/budget" "run.budget" Path("id");
    "POST" "/api/v1/bulk" "run.bulk" Made, NotDryRun;
    "POST" "/api/v1/bulk/{id}/cancel" "bulk.cancel" Path("id");
    "POST" "/api/v1/accounts" "account.open" Body("id");
    "POST" "/api/v1/accounts/{id}/deposit" "account.deposit" Path("id");
    "PUT" "/api/v1/prices/{service}" "price.set" Path("service");
    "DELETE" "/api/v1/prices/{service}" "price.delete" Path("service");
    "PUT" "/api/v1/services/{service}" "service.set" Path("service");
    "POST" "/api/v1/keys" "key.create" Made;
    "POST" "/api/v1/keys/{id}/revoke" "key.revoke" Path("id");
    "POST" "/api/v1/keys/{id}/rotate" "key.rotate" Path("id");
    "POST" "/api/v1/doctor" "server.repair" Server, Repairs;
    "POST" "/api/v1/jobs/{id}/cancel" "job.cancel" Path("id");
    "POST" "/api/v1/jobs/{id}/retry" "job.retry" Path("id");
    "POST" "/api/v1/tasks/{id}/cancel" "job.cancel" Path("id");
    "POST" "/api/v1/tasks/{id}/retry" "job.retry" Path("id");
    "POST" "/api/v1/workers/{id}/drain" "worker.drain" Path("id");
    "POST" "/api/v1/workers/{id}/undrain" "worker.undrain" Path("id");
    "PUT" "/api/v1/queues/{name}" "queue.limit" Path("name");
    "PATCH" "/api/v1/queues/{name}" "queue.limit" Path("name");
    "POST" "/api/v1/queues/{name}/pause" "queue.pause" Path("name");
    "POST" "/api/v1/queues/{name}/resume" "queue.resume" Path("name");
    "POST" "/api/v1/queues/{name}/dlq/replay" "dlq.replay" Path("name");
    "POST" "/api/v1/queues/{name}/dlq/discard" "dlq.discard" Path("name");
    "POST" "/api/v1/schedules" "schedule.create" Made;
    "PATCH" "/api/v1/schedules/{id}" "schedule.change" Path("id");
    "DELETE" "/api/v1/schedules/{id}" "schedule.delete" Path("id");
    "POST" "/api/v1/schedules/{id}/toggle" "schedule.toggle" Path("id");
    "POST" "/api/v1/schedules/{id}/trigger" "schedule.trigger" Path("id");
};

impl AuditedChange {
    /// Whether the request changes nothing.
    pub(super) fn is_dry_run(&self, uri: &Uri) -> bool {
        match self.when {
            AuditCondition::NotDryRun => {
                Query::<DryRunQuery>::try_from_uri(uri).is_ok_and(|Query(asked)| asked.dry_run)
            }
            AuditCondition::Always | AuditCondition::Repairs => false,
        }
    }
}

/// All of them, by path.
pub(crate) struct AuditTable(BTreeMap<String, Vec<&'static AuditedChange>>);

impl AuditTable {
    pub(crate) fn new() -> Self {
        let mut changes: BTreeMap<String, Vec<&'static AuditedChange>> = BTreeMap::new();
        let others = scheduler::PREFIXES.map(|prefix| (prefix, scheduler::AUDITED));
        for (prefix, all) in [("", NATIVE)].into_iter().chain(others) {
            for change in all {
                changes.entry(format!("{prefix}{}", change.path)).or_default().push(change);
            }
        }
        AuditTable(changes)
    }

    /// The change that a request is for.
    pub(super) fn find(&self, method: &Method, path: &str) -> Option<&'static AuditedChange> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        self.0.get(path)?.iter().find(|change| change.method == method.as_str()).copied()
    }

    /// Whether requests of this method to this path are noted.
    pub(crate) fn has(&self, method: &str, path: &str) -> bool {
        self.0.get(path).is_some_and(|all| all.iter().any(|change| change.method == method))
    }
}

/// A registration that takes the id of a live worker. Others of its route are not recorded.
pub(super) const TAKEOVER: &str = "worker.takeover";

/// The names of all changes.
pub(crate) fn words() -> BTreeSet<&'static str> {
    NATIVE.iter().chain(scheduler::AUDITED).map(|change| change.what).chain([TAKEOVER]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Routes that change something and are not recorded.
    const UNNOTED: [&str; 12] = [
        // Runs and jobs that are started are their own record.
        "POST /api/v1/flows/{flow}/runs",
        "POST /api/v1/jobs",
        "POST /api/v1/tasks",
        "POST /api/v1/tasks/batch",
        // The work of workers.
        "POST /api/v1/jobs/claim",
        "POST /api/v1/jobs/finish",
        "POST /api/v1/jobs/exchange",
        "POST /api/v1/jobs/extend",
        "POST /api/v1/calls/{id}/report",
        // Routes that only read.
        "POST /api/v1/flows/validate",
        "POST /api/v1/flows/expand",
        "POST /api/v1/schedules/preview",
    ];

    #[test]
    fn every_route_that_changes_something_is_noted_or_is_said_not_to_be() {
        let mut unnoted: BTreeSet<String> = UNNOTED.iter().map(|route| (*route).to_owned()).collect();
        for (method, path) in scheduler::UNAUDITED.iter().filter_map(|route| route.split_once(' ')) {
            unnoted.extend([format!("{method} {path}"), format!("{method} /api{path}")]);
        }
        let (changes, document) = (AuditTable::new(), crate::openapi());
        let mut routes = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
                let route = format!("{method} {path}");
                let is_noted = changes.has(&method, path);
                assert!(method != "GET" || !is_noted, "{route} changes nothing");
                if method != "GET" {
                    assert_ne!(is_noted, unnoted.contains(&route), "{route}: in the table, or in UNNOTED");
                }
                routes.insert(route);
            }
        }
        assert!(unnoted.is_subset(&routes), "{:?}", unnoted.difference(&routes));
        for (path, all) in &changes.0 {
            for change in all {
                assert!(routes.contains(&format!("{} {path}", change.method)), "{path} is not there");
                if let Path(name) = change.subject {
                    assert!(path.contains(&format!("{{{name}}}")), "{path} has no {name}");
                }
            }
        }
    }

    #[test]
    fn the_document_names_every_change_and_no_other() {
        let document = include_str!("../../../../docs/audit.md");
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
        let named: BTreeSet<&str> =
            rows.filter_map(|row| row.split('`').next()).filter(|word| word.contains('.')).collect();
        assert_eq!(named, words());
    }

    #[test]
    fn a_dry_run_is_no_change() {
        let changes = AuditTable::new();
        let find = |path| changes.find(&Method::POST, path).unwrap();
        let retry = find("/api/v1/runs/{id}/retry");
        for (query, is_dry_run) in
            [("?dry_run=1", true), ("?dry_run=true", true), ("?dry_run=0", false), ("", false)]
        {
            let uri: Uri = format!("/api/v1/runs/run_1/retry{query}").parse().unwrap();
            assert_eq!(retry.is_dry_run(&uri), is_dry_run, "{query}");
        }
        // Other routes have no dry run, so the parameter must not hide their changes.
        assert!(!find("/tasks/cancel").is_dry_run(&"/tasks/cancel?dry_run=1".parse().unwrap()));
        assert!(changes.find(&Method::GET, "/api/v1/flows").is_none());
    }
}
