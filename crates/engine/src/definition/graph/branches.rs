//! The branches of `parallel` and `foreach` nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::calls::{Doer, ExecType, Terms};
use super::node;
use crate::definition::reader::{Fields, Reader, at_index, is_blank, shown};
use crate::definition::refs;
use crate::definition::{Flow, NodeDoers};
use crate::params::Params;
use crate::plan::{Body, Branch, Branches, Exec, Fan, Post, Prep, Scope, Strategy};

/// Settings that every branch of a node takes from the node.
struct Common {
    doer: Doer,
    /// The flow that every branch of the node runs, with its name.
    scope: Option<(Arc<Scope>, String)>,
    terms: Terms,
    params: Params,
    exec_type: ExecType,
    depth: usize,
}

const BY_SERVICE: &str = "has no effect: the branches are named by services; give `parallel_execs`";

/// Reads a `parallel` node: given branches, or services named by a parameter when it is entered.
pub(super) fn parallel(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<Fan> {
    let (max_parallel, strategy) = pace(fields, reader);
    let doer = Doer::of_node(fields, reader);
    let common = common(fields, doer, None, depth, reader);
    let execs = fields.list("parallel_execs", reader).unwrap_or_default();
    if execs.is_empty() {
        common.doer.clone().without_exec_type().warn_of_idle(BY_SERVICE, reader);
    } else {
        common.doer.warn_of_untaken(execs, reader);
    }
    let services = fields.texts("parallel_services", reader).unwrap_or_default();
    let dynamic = common.params.get("services");
    let branches = if !execs.is_empty() {
        let path = fields.at("parallel_execs");
        Branches::Fixed(fixed(execs, &path, max_parallel != Some(1), &common, reader))
    } else if common.exec_type == ExecType::Script && (!services.is_empty() || dynamic.is_some()) {
        let reason = "services cannot be scripts: a name says nothing of what to run".to_owned();
        let hint = "give `parallel_execs`, each with its own `script`";
        reader.hint_error(fields.at("exec_type"), reason, hint);
        return None;
    } else if !services.is_empty() {
        if !reader.admit_branches(services.len(), &common.params, &fields.at("parallel_services")) {
            return None;
        }
        let path = fields.at("parallel_services");
        let branch =
            |(i, service): (usize, &String)| service_branch(service, &at_index(&path, i), &common, reader);
        let branches = services.iter().enumerate().filter_map(branch).enumerate();
        let placed = |(i, branch)| Branch { place: at_index(".parallel_services", i), ..branch };
        Branches::Fixed(branches.map(placed).collect())
    } else if let Some(dynamic) = dynamic {
        let all_texts = dynamic.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        if !all_texts {
            reader.error(fields.at("params"), "`services` must be an array of service names");
            return None;
        }
        Branches::Services { each: by_service(String::new(), &common) }
    } else {
        let reason = "there are no branches: give `parallel_execs`, `parallel_services` or `params.services`";
        reader.error(fields.path.clone(), reason);
        return None;
    };
    Some(Fan { branches, max_parallel, strategy })
}

/// Reads a `foreach` node: one branch for each item, single items done differently.
pub(super) fn foreach(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<Fan> {
    let (max_parallel, strategy) = pace(fields, reader);
    let doer = Doer::of_node(fields, reader);
    let scope = body_scope(fields, depth, reader);
    let has_scope = fields.map.get("subflow").is_some_and(|value| !is_blank(value));
    let doer = if has_scope {
        doer.warn_of_idle("has no effect: the items run the subflow", reader);
        Doer::default()
    } else {
        doer
    };
    let common = common(fields, doer, scope, depth, reader);
    let path = fields.at("foreach_execs");
    let execs = fields.list("foreach_execs", reader).unwrap_or_default();
    if !reader.admit_branches(execs.len(), &common.params, &path) {
        return None;
    }
    let has_each = common.doer.is_named() || has_scope;
    let reads_each = if has_scope { common.scope.is_some() } else { has_each || execs.is_empty() };
    let each = if reads_each { common.body_of(common.doer.clone().shared_with(execs), reader) } else { None };
    let mut each = each.map(|(name, body)| plain(name, body));
    let zeros = execs.iter().filter(|exec| exec.get("index").is_some_and(is_zero)).count();
    let mut special: BTreeMap<usize, Branch> = BTreeMap::new();
    let mut unread = false;
    for (i, value) in execs.iter().enumerate() {
        let path = at_index(&path, i);
        let Some(mut exec) = Fields::of(value, path.clone(), reader) else { continue };
        let given = exec.whole("index", reader).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        // Writers that write every field give 0 to execs without an index.
        let given = given.filter(|at| !(reader.is_lenient() && *at == 0 && (i == 0 || zeros > 1)));
        let branch = branch(exec, &common, reader);
        let Some(branch) = branch.map(|branch| Branch { place: at_index(".foreach_execs", i), ..branch })
        else {
            unread = true;
            continue;
        };
        // Without a service for all items, an exec that names no item is for all of them.
        if given.is_none() && !has_each && each.is_none() {
            each = Some(branch);
            continue;
        }
        let at = given.unwrap_or(i);
        if special.insert(at, branch).is_some() {
            reader.error(format!("{path}.index"), format!("item {at} is given twice"));
        }
    }
    if each.is_none() && !has_each && !unread {
        let reason = "the other items have no service: give `service`, or an exec without `index`";
        reader.error(fields.at("service"), reason);
    }
    Some(Fan { branches: Branches::Items { each: each?, special }, max_parallel, strategy })
}

fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

const STRATEGIES: [(&str, Strategy); 5] = [
    ("fail_fast", Strategy::FailFast),
    ("collect_errors", Strategy::CollectErrors),
    ("ignore_errors", Strategy::IgnoreErrors),
    ("continue", Strategy::Continue),
    // Every branch has the node's retries anyway; the field only says how the node ends when they are used up.
    ("retry", Strategy::FailFast),
];

fn pace(fields: &mut Fields<'_>, reader: &mut Reader) -> (Option<usize>, Strategy) {
    const MODES: [(&str, bool); 2] = [("sequential", false), ("concurrent", true)];
    let concurrent = fields.word("parallel_mode", &MODES, reader).unwrap_or(false);
    let max = fields.whole("max_parallel", reader).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let strategy = fields.word("failure_strategy", &STRATEGIES, reader).unwrap_or_default();
    (if concurrent { max } else { Some(1) }, strategy)
}

fn common(
    fields: &mut Fields<'_>,
    doer: Doer,
    scope: Option<(Arc<Scope>, String)>,
    depth: usize,
    reader: &mut Reader,
) -> Common {
    let exec_type = doer.exec_type_or(ExecType::Http);
    let (terms, params) = (Terms::read(fields, reader), node::params(fields, reader));
    Common { doer, scope, terms, params, exec_type, depth }
}

impl Common {
    /// The body of a branch with these fields: they inherit from the node, and without any of them a branch is the
    /// flow of the node, if it has one.
    fn body_of(&self, doer: Doer, reader: &mut Reader) -> Option<(String, Body)> {
        if let Some((scope, name)) = self.scope.as_ref().filter(|_| !doer.is_given()) {
            return Some((name.clone(), Body::Scope(scope.clone())));
        }
        let (exec, service) = doer.over(&self.doer).exec(self.exec_type, reader)?;
        let call = self.terms.call(exec, service.clone(), Params::default());
        Some((service, Body::Call(Box::new(call))))
    }
}

fn fixed(
    execs: &[Value],
    path: &str,
    side_by_side: bool,
    common: &Common,
    reader: &mut Reader,
) -> Vec<Branch> {
    if !reader.admit_branches(execs.len(), &common.params, path) {
        return Vec::new();
    }
    let mut branches = Vec::with_capacity(execs.len());
    // The first branch that writes each key; `None` once a clash over the key has been reported.
    let mut writers: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (i, value) in execs.iter().enumerate() {
        let Some(exec) = Fields::of(value, at_index(path, i), reader) else { continue };
        let Some(branch) = branch(exec, common, reader) else { continue };
        let keys: BTreeSet<&str> = refs::of_post(&branch.post).filter(|_| side_by_side).collect();
        for key in keys {
            let Some(first) = writers.get_mut(key) else {
                writers.insert(key.to_owned(), Some(i));
                continue;
            };
            if let Some(first) = first.take() {
                let key = shown(key);
                let reason = format!(
                    "branch {first} and this branch run side by side and both write `{key}`: the later one wins"
                );
                reader.warning(at_index(path, i), reason);
            }
        }
        branches.push(Branch { place: at_index(".parallel_execs", i), ..branch });
    }
    branches
}

/// One exec: the service or function that it names, with its own params over the node's.
fn branch(mut exec: Fields<'_>, common: &Common, reader: &mut Reader) -> Option<Branch> {
    let doer = Doer::read(&mut exec, reader);
    let own = node::params(&mut exec, reader);
    let prep = node::prep(&mut exec, reader);
    let post = node::post(&mut exec, reader);
    for (name, is_given) in
        [("action_static", post.action_static.is_some()), ("action_key", post.action_key.is_some())]
    {
        if is_given {
            let reason =
                "has no effect: a branch follows no edge; the action of the node is in its own `post`";
            reader.warning(format!("{}.post.{name}", exec.path), reason);
        }
    }
    let has_scope = exec.map.get("subflow").is_some_and(|value| !is_blank(value));
    let body = match body_scope(&mut exec, common.depth, reader) {
        Some((scope, name)) => {
            doer.warn_of_idle("has no effect: the branch runs its subflow", reader);
            Some((name, Body::Scope(scope)))
        }
        None if has_scope => None,
        None => common.body_of(doer, reader),
    };
    let title = exec.name("name", reader).map(str::to_owned);
    let is_item = exec.knows("index");
    for idle in ["node", "index"] {
        let is_idle = exec.value(idle).is_some_and(|value| !is_blank(value)) && !(is_item && idle == "index");
        if is_idle {
            reader.warning(exec.at(idle), "has no effect on a branch");
        }
    }
    exec.finish(reader);
    let (name, body) = body?;
    Some(Branch { name: title.unwrap_or(name), body, params: own, prep, post, place: String::new() })
}

/// A branch that is a flow of its own, with the name it goes by.
fn body_scope(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<(Arc<Scope>, String)> {
    let value = fields.value("subflow").filter(|value| !is_blank(value))?;
    // A branch begins with the fields of its item, which are unknown until the flow runs.
    let outside = reader.begins_with.take();
    let flow = Flow::read(value, &fields.at("subflow"), depth + 1, NodeDoers::new(), reader);
    reader.begins_with = outside;
    let flow = flow?;
    Some((Arc::new(flow.root?), flow.title.unwrap_or_else(|| "subflow".to_owned())))
}

fn service_branch(service: &str, path: &str, common: &Common, reader: &mut Reader) -> Option<Branch> {
    if service.is_empty() {
        reader.error(path, "the service is missing: give its name");
        return None;
    }
    reader.check_name(service, path).then(|| by_service(service.to_owned(), common))
}

fn by_service(service: String, common: &Common) -> Branch {
    let exec = match common.exec_type {
        // Scripts have been refused.
        ExecType::Http | ExecType::Script => Exec::Http,
        ExecType::Queue => Exec::Queue,
        ExecType::Func => Exec::Func { name: service.clone() },
    };
    let call = common.terms.call(exec, service.clone(), Params::default());
    plain(service, Body::Call(Box::new(call)))
}

fn plain(name: String, body: Body) -> Branch {
    Branch {
        name,
        body,
        params: Params::default(),
        prep: Prep::Scope,
        post: Post::default(),
        place: String::new(),
    }
}
