//! The changes that are noted: one table for all surfaces. A test walks every route and finds it here, or among those
//! of which it says why not.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::Query;
use axum::http::{Method, Uri};
use windlass_sdk::types::PlanQuery;

/// A change that is noted.
#[derive(Debug)]
pub(super) struct Change {
    method: &'static str,
    path: &'static str,
    /// What it is called.
    pub(super) what: &'static str,
    pub(super) subject: Subject,
    pub(super) when: When,
}

/// Where it stands what a change is asked of. Fields are named without capitals and underscores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// In the path, under this name.
    Path(&'static str),
    /// In a field of the body, or of the query where a surface takes that for the same.
    Body(&'static str),
    /// The same, and it is the id of a run as the scheduler surface spells it.
    Task(&'static str),
    /// The same of a flow.
    Flow(&'static str),
    /// In the answer: see [`super::Made`].
    Made,
    /// The server as a whole.
    Server,
}

/// When a change is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Unless it is only told what would be done.
    NotPlanned,
    /// If the body says that what is wrong is repaired.
    Repairs,
}

macro_rules! changes {
    (@when) => { When::Always };
    (@when $when:ident) => { When::$when };
    ($($method:literal $path:literal $what:literal $subject:expr $(, $when:ident)?;)*) => {
        &[$(Change {
            method: $method,
            path: $path,
            what: $what,
            subject: $subject,
            when: changes!(@when $($when)?),
        }),*]
    };
}

use Subject::{Body, Flow, Made, Path, Server, Task};

/// Of the native and the queue platform surface.
const NATIVE: &[Change] = changes! {
    "POST" "/api/v1/flows" "flow.create" Body("name");
    "POST" "/api/v1/flows/{flow}/versions" "flow.publish" Path("flow");
    "POST" "/api/v1/flows/{flow}/instantiate" "flow.instantiate" Body("name");
    "POST" "/api/v1/runs/{id}/cancel" "run.cancel" Path("id");
    "POST" "/api/v1/runs/{id}/pause" "run.pause" Path("id");
    "POST" "/api/v1/runs/{id}/resume" "run.resume" Path("id");
    "POST" "/api/v1/runs/{id}/step" "run.step" Path("id");
    "POST" "/api/v1/runs/{id}/retry" "run.retry" Path("id"), NotPlanned;
    "POST" "/api/v1/runs/{id}/rerun" "run.rerun" Path("id"), NotPlanned;
    "POST" "/api/v1/runs/{id}/continue" "run.continue" Path("id");
    "POST" "/api/v1/runs/{id}/signal" "run.signal" Path("id");
    "POST" "/api/v1/runs/{id}/decide" "run.decide" Path("id");
    "POST" "/api/v1/runs/{id}/budget" "run.budget" Path("id");
    "POST" "/api/v1/accounts" "account.open" Body("id");
    "POST" "/api/v1/accounts/{id}/deposit" "account.deposit" Path("id");
    "PUT" "/api/v1/prices/{service}" "price.set" Path("service");
    "DELETE" "/api/v1/prices/{service}" "price.delete" Path("service");
    "PUT" "/api/v1/services/{service}" "service.set" Path("service");
    "POST" "/api/v1/doctor" "server.repair" Server, Repairs;
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

/// Of the scheduler surface, without its prefix: both eras are noted alike, and in the words of ours.
const SCHEDULER: &[Change] = changes! {
    "POST" "/flows" "flow.create" Body("name");
    "POST" "/flows/version" "flow.publish" Flow("flowid");
    "POST" "/tasks/run_once" "run.step" Task("id");
    "POST" "/tasks/cancel" "run.cancel" Task("id");
    "POST" "/tasks/signal" "run.signal" Task("taskid");
};

impl Change {
    /// Whether nothing would be done.
    pub(super) fn is_planned(&self, uri: &Uri) -> bool {
        match self.when {
            When::NotPlanned => Query::<PlanQuery>::try_from_uri(uri).is_ok_and(|Query(asked)| asked.plan),
            When::Always | When::Repairs => false,
        }
    }
}

/// All of them, by path.
pub(crate) struct Changes(BTreeMap<String, Vec<&'static Change>>);

impl Changes {
    pub(crate) fn new() -> Self {
        let mut changes: BTreeMap<String, Vec<&'static Change>> = BTreeMap::new();
        for (prefix, all) in [("", NATIVE), ("/api", SCHEDULER), ("", SCHEDULER)] {
            for change in all {
                changes.entry(format!("{prefix}{}", change.path)).or_default().push(change);
            }
        }
        Changes(changes)
    }

    /// The change that a request is for.
    pub(super) fn find(&self, method: &Method, path: &str) -> Option<&'static Change> {
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

/// What changes are called.
pub(crate) fn words() -> BTreeSet<&'static str> {
    NATIVE.iter().chain(SCHEDULER).map(|change| change.what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What changes something and is not noted; on the scheduler surface, with both of its prefixes.
    const UNNOTED: [&str; 10] = [
        // Runs and jobs that are started are their own record.
        "POST /api/v1/flows/{flow}/runs",
        "POST /api/v1/tasks",
        "POST /api/v1/tasks/batch",
        // What workers do.
        "POST /api/v1/jobs/claim",
        "POST /api/v1/jobs/finish",
        "POST /api/v1/jobs/extend",
        "POST /api/v1/calls/{id}/report",
        // What is only looked at.
        "POST /api/v1/flows/validate",
        "POST /api/v1/flows/expand",
        "POST /api/v1/schedules/preview",
    ];
    const UNNOTED_OF_SCHEDULER: [&str; 8] = [
        "POST /tasks",
        "POST /workers/register",
        "POST /register",
        "POST /workers/heartbeat",
        "POST /heartbeat",
        "POST /queue/poll",
        "POST /queue/complete",
        "POST /queue/update_run",
    ];

    #[test]
    fn every_route_that_changes_something_is_noted_or_is_said_not_to_be() {
        let mut unnoted: BTreeSet<String> = UNNOTED.iter().map(|route| (*route).to_owned()).collect();
        for (method, path) in UNNOTED_OF_SCHEDULER.iter().filter_map(|route| route.split_once(' ')) {
            unnoted.extend([format!("{method} {path}"), format!("{method} /api{path}")]);
        }
        let (changes, document) = (Changes::new(), crate::openapi());
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
    fn a_round_that_is_only_told_is_no_change() {
        let changes = Changes::new();
        let find = |path| changes.find(&Method::POST, path).unwrap();
        let retry = find("/api/v1/runs/{id}/retry");
        for (query, is_planned) in [("?plan=1", true), ("?plan=true", true), ("?plan=0", false), ("", false)]
        {
            let uri: Uri = format!("/api/v1/runs/run_1/retry{query}").parse().unwrap();
            assert_eq!(retry.is_planned(&uri), is_planned, "{query}");
        }
        // Nobody else asks for plans, so that nobody gets past by saying so.
        assert!(!find("/tasks/cancel").is_planned(&"/tasks/cancel?plan=1".parse().unwrap()));
        assert!(changes.find(&Method::GET, "/api/v1/flows").is_none());
    }
}
