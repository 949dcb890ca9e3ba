//! The table of routes and the permission that each requires. A test compares it with the routes of every surface.

use std::collections::BTreeMap;

use axum::http::Method;
use windlass_engine::access::Permission;

use crate::scheduler;

/// A route and its requirement; no permission = it is public, because it serves files of this program only.
#[derive(Debug)]
pub(crate) struct AccessRule {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) permission: Option<Permission>,
}

/// The requirement of a matched route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    Public,
    Needs(Permission),
    /// The route is in the table with other methods.
    NoMethod,
    /// The route is not in the table: no caller with a key may use it.
    Unlisted,
}

macro_rules! access_rules {
    (@of Public) => { None };
    (@of $permission:ident) => { Some(windlass_engine::access::Permission::$permission) };
    ($($method:literal $path:literal $permission:ident;)*) => {
        &[$($crate::access::AccessRule {
            method: $method,
            path: $path,
            permission: access_rules!(@of $permission),
        }),*]
    };
}

pub(crate) use access_rules;

/// Pages and documents of this program. Probes of load balancers have no key, so both health routes are here.
const PUBLIC: &[AccessRule] = access_rules! {
    "GET" "/" Public;
    "GET" "/openapi.json" Public;
    "GET" "/ui" Public;
    "GET" "/ui/" Public;
    "GET" "/ui/{*path}" Public;
    "GET" "/docs" Public;
    "GET" "/docs/" Public;
    "GET" "/docs/{*path}" Public;
    "GET" "/healthz" Public;
    "GET" "/readyz" Public;
};

/// The native surface and the queue platform surface.
const NATIVE: &[AccessRule] = access_rules! {
    "GET" "/metrics" Read;
    "GET" "/api/v1/about" Read;
    "GET" "/api/v1/overview" Read;
    "GET" "/api/v1/series" Read;
    "GET" "/api/v1/search" Read;
    "GET" "/api/v1/stats" Read;
    "GET" "/api/v1/events" Read;
    "GET" "/api/v1/audit" Admin;
    "GET" "/api/v1/audit/head" Admin;
    "GET" "/api/v1/audit/verify" Admin;
    // A repair needs more; its handler looks at the body.
    "POST" "/api/v1/doctor" Read;
    "GET" "/api/v1/keys" Admin;
    "POST" "/api/v1/keys" Admin;
    "POST" "/api/v1/keys/{id}/revoke" Admin;
    "POST" "/api/v1/keys/{id}/rotate" Admin;

    "GET" "/api/v1/flows" Read;
    "POST" "/api/v1/flows" Author;
    "POST" "/api/v1/flows/validate" Read;
    "POST" "/api/v1/flows/expand" Read;
    "GET" "/api/v1/flows/{flow}" Read;
    "GET" "/api/v1/flows/{flow}/diff" Read;
    "GET" "/api/v1/flows/{flow}/graph" Read;
    "GET" "/api/v1/flows/{flow}/graph.svg" Read;
    "GET" "/api/v1/flows/{flow}/stats" Read;
    "GET" "/api/v1/flows/{flow}/versions" Read;
    "POST" "/api/v1/flows/{flow}/versions" Author;
    "GET" "/api/v1/flows/{flow}/versions/{version}" Read;
    "POST" "/api/v1/flows/{flow}/instantiate" Author;
    "POST" "/api/v1/flows/{flow}/runs" Run;
    "GET" "/api/v1/examples" Read;
    "POST" "/api/v1/examples" Author;

    "GET" "/api/v1/runs" Read;
    "GET" "/api/v1/runs/counts" Read;
    "GET" "/api/v1/runs/{id}" Read;
    "GET" "/api/v1/runs/{id}/attempts" Read;
    "GET" "/api/v1/runs/{id}/events" Read;
    "GET" "/api/v1/runs/{id}/graph" Read;
    "GET" "/api/v1/runs/{id}/journal" Read;
    "GET" "/api/v1/runs/{id}/logs" Read;
    "GET" "/api/v1/runs/{id}/output" Read;
    "GET" "/api/v1/runs/{id}/state" Read;
    "GET" "/api/v1/runs/{id}/state/diff" Read;
    "GET" "/api/v1/runs/{id}/stats" Read;
    "GET" "/api/v1/runs/{id}/view" Read;
    "GET" "/api/v1/runs/{id}/why" Read;
    "POST" "/api/v1/runs/{id}/budget" Run;
    "POST" "/api/v1/runs/{id}/cancel" Run;
    "POST" "/api/v1/runs/{id}/continue" Run;
    "POST" "/api/v1/runs/{id}/pause" Run;
    "POST" "/api/v1/runs/{id}/rerun" Run;
    "POST" "/api/v1/runs/{id}/resume" Run;
    "POST" "/api/v1/runs/{id}/retry" Run;
    "POST" "/api/v1/runs/{id}/signal" Run;
    "POST" "/api/v1/runs/{id}/step" Run;
    "POST" "/api/v1/runs/{id}/decide" Decide;
    "GET" "/api/v1/approvals" Read;
    "GET" "/api/v1/bulk" Read;
    "POST" "/api/v1/bulk" Run;
    "GET" "/api/v1/bulk/{id}" Read;
    "POST" "/api/v1/bulk/{id}/cancel" Run;

    "GET" "/api/v1/accounts" Read;
    "POST" "/api/v1/accounts" Author;
    "GET" "/api/v1/accounts/{id}" Read;
    "POST" "/api/v1/accounts/{id}/deposit" Admin;
    "GET" "/api/v1/accounts/{id}/ledger" Read;
    "GET" "/api/v1/prices" Read;
    "GET" "/api/v1/prices/{service}" Read;
    "PUT" "/api/v1/prices/{service}" Author;
    "DELETE" "/api/v1/prices/{service}" Admin;
    "GET" "/api/v1/services" Read;
    "GET" "/api/v1/services/{service}" Read;
    "PUT" "/api/v1/services/{service}" Author;

    "GET" "/api/v1/jobs" Read;
    "POST" "/api/v1/jobs" Run;
    "GET" "/api/v1/jobs/{id}" Read;
    "GET" "/api/v1/jobs/{id}/attempts" Read;
    "POST" "/api/v1/jobs/{id}/cancel" Run;
    "POST" "/api/v1/jobs/{id}/retry" Run;
    // The work of workers: handlers check the services and queues of the key.
    "POST" "/api/v1/jobs/claim" Work;
    "POST" "/api/v1/jobs/extend" Work;
    "POST" "/api/v1/jobs/finish" Work;
    "POST" "/api/v1/jobs/exchange" Work;
    "POST" "/api/v1/calls/{id}/report" Work;

    "GET" "/api/v1/tasks" Read;
    "POST" "/api/v1/tasks" Run;
    "POST" "/api/v1/tasks/batch" Run;
    "GET" "/api/v1/tasks/{id}" Read;
    "GET" "/api/v1/tasks/{id}/runs" Read;
    "POST" "/api/v1/tasks/{id}/cancel" Run;
    "POST" "/api/v1/tasks/{id}/retry" Run;
    "GET" "/api/v1/workers" Read;
    "POST" "/api/v1/workers/{id}/drain" Run;
    "POST" "/api/v1/workers/{id}/undrain" Run;
    "GET" "/api/v1/queues" Read;
    "GET" "/api/v1/queues/{name}" Read;
    "PUT" "/api/v1/queues/{name}" Author;
    "PATCH" "/api/v1/queues/{name}" Author;
    "POST" "/api/v1/queues/{name}/pause" Run;
    "POST" "/api/v1/queues/{name}/resume" Run;
    "GET" "/api/v1/queues/{name}/dlq" Read;
    "GET" "/api/v1/queues/{name}/dlq/groups" Read;
    "POST" "/api/v1/queues/{name}/dlq/replay" Run;
    "POST" "/api/v1/queues/{name}/dlq/discard" Run;
    "GET" "/api/v1/schedules" Read;
    "POST" "/api/v1/schedules" Author;
    "POST" "/api/v1/schedules/preview" Read;
    "GET" "/api/v1/schedules/{id}" Read;
    "PATCH" "/api/v1/schedules/{id}" Author;
    "DELETE" "/api/v1/schedules/{id}" Author;
    "GET" "/api/v1/schedules/{id}/next" Read;
    "POST" "/api/v1/schedules/{id}/toggle" Author;
    "POST" "/api/v1/schedules/{id}/trigger" Run;
};

/// All rules, by path.
pub(crate) struct AccessTable(BTreeMap<String, Vec<&'static AccessRule>>);

impl AccessTable {
    pub(crate) fn new() -> Self {
        let mut rules: BTreeMap<String, Vec<&'static AccessRule>> = BTreeMap::new();
        let others = scheduler::PREFIXES.map(|prefix| (prefix, scheduler::ACCESS));
        for (prefix, all) in [("", PUBLIC), ("", NATIVE)].into_iter().chain(others) {
            for rule in all {
                rules.entry(format!("{prefix}{}", rule.path)).or_default().push(rule);
            }
        }
        AccessTable(rules)
    }

    /// The requirement of a matched route. A route of GET takes HEAD, too.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Requirement {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let Some(rules) = self.0.get(path) else { return Requirement::Unlisted };
        match rules.iter().find(|rule| rule.method == method.as_str()) {
            Some(AccessRule { permission: Some(permission), .. }) => Requirement::Needs(*permission),
            Some(AccessRule { permission: None, .. }) => Requirement::Public,
            None => Requirement::NoMethod,
        }
    }

    /// Every rule with its whole path, for the document and for tests.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (&str, &'static AccessRule)> {
        self.0.iter().flat_map(|(path, rules)| rules.iter().map(move |rule| (path.as_str(), *rule)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Routes that the document describes by their pages.
    const PAGES: [&str; 5] = ["/ui", "/ui/{*path}", "/docs/", "/docs/{*path}", "/ui/"];

    #[test]
    fn every_route_is_in_the_table_and_no_other() {
        let (table, document) = (AccessTable::new(), crate::openapi());
        let mut routes = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
                // Pages below `/docs` are described one by one.
                let path = if path.starts_with("/docs/") { "/docs/{*path}" } else { path.as_str() };
                let found = table.find(&method.parse().unwrap(), path);
                let is_listed = matches!(found, Requirement::Public | Requirement::Needs(_));
                assert!(is_listed, "{method} {path} has no entry: say who may use it");
                routes.insert(format!("{method} {path}"));
            }
        }
        for (path, rule) in table.rules() {
            let route = format!("{} {path}", rule.method);
            assert!(PAGES.contains(&path) || routes.contains(&route), "{route} is not there");
        }
    }

    #[test]
    fn only_files_and_probes_are_public_and_changes_need_more_than_read() {
        let table = AccessTable::new();
        let reads = ["/api/v1/flows/validate", "/api/v1/flows/expand", "/api/v1/schedules/preview"];
        for (path, rule) in table.rules() {
            let is_file = matches!(path, "/" | "/openapi.json" | "/healthz" | "/readyz")
                || path.starts_with("/ui")
                || path.starts_with("/docs");
            assert_eq!(rule.permission.is_none(), is_file, "{path}");
            if rule.method != "GET" && !reads.contains(&path) && path != "/api/v1/doctor" {
                assert_ne!(rule.permission, Some(Permission::Read), "{} {path}", rule.method);
            }
        }
    }

    #[test]
    fn a_route_without_an_entry_and_a_method_without_one_are_told_apart() {
        let table = AccessTable::new();
        let find = |method: Method, path| table.find(&method, path);
        assert_eq!(find(Method::GET, "/api/v1/secrets"), Requirement::Unlisted);
        assert_eq!(find(Method::DELETE, "/api/v1/flows"), Requirement::NoMethod);
        assert_eq!(find(Method::HEAD, "/api/v1/flows"), Requirement::Needs(Permission::Read));
        assert_eq!(find(Method::POST, "/api/queue/poll"), Requirement::Needs(Permission::Work));
        assert_eq!(find(Method::POST, "/queue/poll"), Requirement::Needs(Permission::Work));
    }
}
