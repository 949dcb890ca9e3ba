//! What a metrics server scrapes: the Prometheus text format, version 0.0.4.
//!
//! Written by hand from what is counted anyway: nothing is counted twice, and nothing has to run for it. Labels are
//! bounded by what is counted: flows, their nodes, and queues.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use windlass_engine::time::Timestamp;
use windlass_runtime::queue::{QueueView, RedisStats, Spread};
use windlass_runtime::stats::{FlowSums, NodeStats, OTHERS, ServerStats, Totals};

use super::stats::flow_name;
use crate::app::App;
use crate::problem::Answer;

/// Queues with labels of their own, those with the most open jobs; the others are added up.
const QUEUES_MAX: usize = 100;
/// Nodes with labels of their own: when there are more, the flows that came last are told as a whole.
const NODES_MAX: usize = 2_000;
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Says how this server goes, for a metrics server that asks every few seconds.
#[utoipa::path(get, path = "/metrics", operation_id = "show_metrics", tag = "server",
    responses((status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(app): State<App>) -> Answer<Response> {
    let mut names = HashMap::new();
    for id in app.runtime.flows_with_stats() {
        names.insert(id, flow_name(&app, id).await?);
    }
    let flows = app.runtime.stats_by_name(&names);
    let queues = app.runtime.queues().await?;
    let mut page = Page::default();
    let seen = app.runtime.server_stats();
    server(&mut page, &seen);
    if let Some(redis) = app.runtime.redis_stats() {
        of_redis(&mut page, redis);
    }
    of_runs(&mut page, &flows);
    of_calls(&mut page, &flows);
    of_queues(&mut page, &queues, app.runtime.clock().now());
    Ok(([(CONTENT_TYPE, KIND)], page.text).into_response())
}

/// What flows did, by name.
type Flows = BTreeMap<String, FlowSums>;

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// What follows are samples of this metric.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to text cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.text.push_str(name);
        for (nth, (label, of)) in labels.iter().enumerate() {
            self.text.push(if nth == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"{}\"", escaped(of));
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric with one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.metric(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Samples of a summary: times in milliseconds, told in seconds.
    fn summary(&mut self, name: &str, labels: &[(&str, &str)], n: u64, sum: u64, spread: &Spread) {
        for (quantile, ms) in [("0.5", spread.p50), ("0.95", spread.p95), ("0.99", spread.p99)] {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("quantile", quantile)]).collect();
            if let Some(ms) = ms {
                self.sample(name, &labels, seconds(ms));
            }
        }
        self.sample(&format!("{name}_sum"), labels, seconds(sum));
        self.sample(&format!("{name}_count"), labels, n);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "nobody reads the last digits of a time")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

fn server(page: &mut Page, seen: &ServerStats) {
    let (all, process) = (&seen.all, &seen.process);
    page.one("windlass_calls_running", "gauge", "Calls of runs that somebody has now.", all.n_open);
    let queued = seen.n_queued;
    page.one(
        "windlass_calls_waiting",
        "gauge",
        "Calls that were put into a queue and nobody has yet.",
        queued,
    );
    let stretches = [("10s", &seen.last_10s), ("1m", &seen.last_minute), ("1h", &seen.last_hour)];
    page.metric(
        "windlass_parallelism_average",
        "gauge",
        "Calls that somebody had at once on average, lately.",
    );
    for (window, found) in stretches {
        page.sample("windlass_parallelism_average", &[("window", window)], found.average());
    }
    page.metric("windlass_parallelism_max", "gauge", "Calls that somebody had at once at most, lately.");
    for (window, found) in stretches {
        page.sample("windlass_parallelism_max", &[("window", window)], found.max);
    }
    let nodes = all.totals.nodes_settled;
    page.one("windlass_nodes_ended_total", "counter", "Nodes and branches that are over.", nodes);
    page.one("windlass_runs_in_memory", "gauge", "Runs that are kept in memory.", seen.n_hot_runs);
    page.one("windlass_calls_own", "gauge", "Calls that this server makes itself now.", seen.n_own_calls);
    page.one("windlass_inputs_waiting", "gauge", "Inputs that wait to be decided.", seen.n_inputs);
    page.metric("windlass_claims_lost_total", "counter", "Jobs that were handed out in vain.");
    for (reason, n) in [("taken", seen.n_claims_lost), ("turn", seen.n_turns_lost)] {
        page.sample("windlass_claims_lost_total", &[("reason", reason)], n);
    }
    page.one("windlass_tasks_alive", "gauge", "Tasks of the asynchronous runtime.", process.tasks);
    page.one("windlass_up_seconds", "gauge", "How long the server has been up.", seconds(process.up_ms));
    let cpu = process.cpu_ms.map(seconds);
    if let Some(cpu) = cpu {
        page.one("process_cpu_seconds_total", "counter", "CPU time that the process used.", cpu);
    }
    let figures = [
        ("process_resident_memory_bytes", "Memory of the process that is resident.", process.resident_bytes),
        ("process_open_fds", "Files that the process has open.", process.open_files),
        ("process_threads", "Threads of the process.", process.threads),
    ];
    for (name, help, value) in figures {
        if let Some(value) = value {
            page.one(name, "gauge", help, value);
        }
    }
}

fn of_redis(page: &mut Page, redis: RedisStats) {
    let RedisStats { is_up, n_fills, n_outages } = redis;
    let up = u8::from(is_up);
    page.one("windlass_redis_up", "gauge", "Whether jobs are handed out through Redis now.", up);
    page.one("windlass_redis_outages_total", "counter", "How often Redis was away.", n_outages);
    page.one("windlass_redis_fills_total", "counter", "Queues that Redis was given from the store.", n_fills);
}

fn of_runs(page: &mut Page, flows: &Flows) {
    page.metric("windlass_runs_started_total", "counter", "Runs that began, by flow.");
    for (flow, stats) in flows {
        page.sample("windlass_runs_started_total", &[("flow", flow)], stats.totals.runs_begun);
    }
    page.metric("windlass_runs_ended_total", "counter", "Runs that ended, by flow and status.");
    for (flow, FlowSums { totals, .. }) in flows {
        for (status, n) in [
            ("completed", totals.runs_completed),
            ("failed", totals.runs_failed),
            ("canceled", totals.runs_canceled),
        ] {
            page.sample("windlass_runs_ended_total", &[("flow", flow), ("status", status)], n);
        }
    }
    page.metric("windlass_run_duration_seconds", "summary", "How long runs took, by flow.");
    for (flow, stats) in flows {
        let (n, sum, spread) = &stats.run_ms;
        page.summary("windlass_run_duration_seconds", &[("flow", flow)], *n, *sum, spread);
    }
}

/// The nodes of a flow, or all of them as one.
fn told<'f>(stats: &'f FlowSums, left: &mut usize) -> Cow<'f, [NodeStats]> {
    if stats.nodes.len() <= *left {
        *left -= stats.nodes.len();
        return Cow::Borrowed(&stats.nodes);
    }
    let Totals { calls_ok, calls_failed, calls_suspended, .. } = stats.totals;
    Cow::Owned(vec![NodeStats {
        node: OTHERS.to_owned(),
        n_ok: calls_ok,
        n_failed: calls_failed,
        n_suspended: calls_suspended,
        ms: stats.call_ms.clone(),
        wait_ms: Spread::default(),
        whole_ms: Spread::default(),
    }])
}

fn of_calls(page: &mut Page, flows: &Flows) {
    page.metric("windlass_flow_calls_running", "gauge", "Calls that somebody has now, by flow.");
    for (flow, stats) in flows {
        page.sample("windlass_flow_calls_running", &[("flow", flow)], stats.n_open);
    }
    page.metric("windlass_call_wait_seconds", "summary", "How long calls were in a queue, by flow.");
    for (flow, stats) in flows {
        let (n, sum, spread) = &stats.wait_ms;
        page.summary("windlass_call_wait_seconds", &[("flow", flow)], *n, *sum, spread);
    }
    page.metric("windlass_calls_ended_total", "counter", "Attempts at calls, by flow, node and outcome.");
    let mut left = NODES_MAX;
    let flows: Vec<_> = flows.iter().map(|(flow, stats)| (flow.as_str(), told(stats, &mut left))).collect();
    for (flow, nodes) in &flows {
        for NodeStats { node, n_ok, n_failed, n_suspended, .. } in nodes.iter() {
            for (outcome, n) in [("succeeded", n_ok), ("failed", n_failed), ("suspended", n_suspended)] {
                let labels = [("flow", *flow), ("node", node), ("outcome", outcome)];
                page.sample("windlass_calls_ended_total", &labels, n);
            }
        }
    }
    page.metric("windlass_call_duration_seconds", "summary", "How long attempts took, by flow and node.");
    for (flow, nodes) in &flows {
        for NodeStats { node, ms: (n, sum, spread), .. } in nodes.iter() {
            let labels = [("flow", *flow), ("node", node)];
            page.summary("windlass_call_duration_seconds", &labels, *n, *sum, spread);
        }
    }
}

/// A queue in numbers: open jobs by state, dead letters, the age of the oldest that can be claimed.
type Depths = (String, Vec<(&'static str, u64)>, u64, u64);

fn of_queues(page: &mut Page, queues: &[QueueView], now: Timestamp) {
    let queues = bounded(queues.iter().map(|view| depths(view, now)).collect());
    page.metric("windlass_queue_jobs", "gauge", "Open jobs, by queue and state.");
    for (queue, states, ..) in &queues {
        for (state, n) in states {
            page.sample("windlass_queue_jobs", &[("queue", queue), ("state", state)], n);
        }
    }
    page.metric("windlass_queue_dead_letters", "gauge", "Jobs that failed for good, by queue.");
    for (queue, _, dead, _) in &queues {
        page.sample("windlass_queue_dead_letters", &[("queue", queue)], dead);
    }
    page.metric("windlass_queue_oldest_seconds", "gauge", "How long the next job could have been claimed.");
    for (queue, .., age) in &queues {
        page.sample("windlass_queue_oldest_seconds", &[("queue", queue)], seconds(*age));
    }
}

fn depths(view: &QueueView, now: Timestamp) -> Depths {
    let depth = &view.depth;
    let states = depth.open.iter().map(|(status, n)| (status.word(), *n)).collect();
    let age_ms = depth.oldest_due_at.map_or(0, |due| now.since(due));
    (depth.name.clone(), states, depth.n_dead_letters, age_ms)
}

/// The longest queues by themselves, and the others together.
fn bounded(mut queues: Vec<Depths>) -> Vec<Depths> {
    let n_open = |(_, states, ..): &Depths| states.iter().map(|(_, n)| n).sum::<u64>();
    queues.sort_by(|a, b| n_open(b).cmp(&n_open(a)).then_with(|| a.0.cmp(&b.0)));
    let rest = queues.split_off(QUEUES_MAX.min(queues.len()));
    if rest.is_empty() {
        return queues;
    }
    // Somebody may have called a queue so: it is one of them.
    let named = queues.iter().position(|(name, ..)| name == OTHERS).map(|at| queues.remove(at));
    let mut others: Depths = (OTHERS.to_owned(), Vec::new(), 0, 0);
    for (_, states, dead, age) in rest.into_iter().chain(named) {
        for (state, n) in states {
            match others.1.iter_mut().find(|(known, _)| *known == state) {
                Some((_, sum)) => *sum += n,
                None => others.1.push((state, n)),
            }
        }
        others.2 += dead;
        others.3 = others.3.max(age);
    }
    queues.push(others);
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_label_says_cannot_break_the_page() {
        let mut page = Page::default();
        page.sample("m", &[("flow", "a\"b\\c\nd")], 1);
        page.sample("n", &[], 0.5);
        assert_eq!(page.text, "m{flow=\"a\\\"b\\\\c\\nd\"} 1\nn 0.5\n");
    }

    #[test]
    fn of_too_many_queues_the_shortest_are_added_up() {
        let queue = |n: u64| (format!("q{n:03}"), vec![("queued", n)], 1, n);
        let queues = bounded((0..150).map(queue).collect());
        assert_eq!(queues.len(), QUEUES_MAX + 1);
        assert_eq!(queues[0].0, "q149");
        let (name, states, dead, age) = &queues[QUEUES_MAX];
        assert_eq!(
            (name.as_str(), states.as_slice(), *dead, *age),
            ("/other", &[("queued", 1_225)][..], 50, 49)
        );
        let named = ("/other".to_owned(), vec![("queued", 1_000)], 0, 0);
        let queues = bounded((0..150).map(queue).chain([named]).collect());
        let others: Vec<&Depths> = queues.iter().filter(|(name, ..)| name == OTHERS).collect();
        assert_eq!((others.len(), others[0].1[0].1), (1, 1_000 + 1_275));
    }

    #[test]
    fn times_are_told_in_seconds_and_only_if_there_are_any() {
        let mut page = Page::default();
        page.summary("t", &[], 0, 0, &Spread::default());
        assert_eq!(page.text, "t_sum 0\nt_count 0\n");
        let mut page = Page::default();
        let spread = Spread { p50: Some(1_500), ..Spread::default() };
        page.summary("t", &[("flow", "f")], 2, 3_000, &spread);
        assert_eq!(
            page.text,
            "t{flow=\"f\",quantile=\"0.5\"} 1.5\nt_sum{flow=\"f\"} 3\nt_count{flow=\"f\"} 2\n"
        );
    }
}
