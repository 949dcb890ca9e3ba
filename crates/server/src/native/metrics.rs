//! The page that a metrics server scrapes, in the Prometheus text format.
//!
//! `GET /metrics` turns the counters of the runtime into metric families; the `prometheus` crate encodes them. The
//! labels are bounded by the counters: flows, their nodes, and queues.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram as BucketCounts, LabelPair, Metric, MetricFamily, MetricType,
};
use prometheus::{TEXT_FORMAT, TextEncoder};
use windlass_engine::parallelism::{Parallelism, levels_of};
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::{QueueView, RedisStats};
use windlass_runtime::stats::{FlowMetrics, NodeMetrics, OTHER_LABEL, ServerActivity};

use super::stats::flow_name;
use windlass_store::condition::{StoreCondition, StoreFault};
use windlass_store::page::NameRange;

use crate::app::App;
use crate::problem::ApiResult;

/// Queues with labels of their own, those with the most open jobs; the others are added up.
const QUEUES_MAX: usize = 100;
/// Nodes with labels of their own. Beyond that, the flows that sort last show all their nodes as one.
const NODES_MAX: usize = 2_000;

/// Shows the metrics of this server, for a metrics server that scrapes it every few seconds.
#[utoipa::path(get, path = "/metrics", operation_id = "show_metrics", tag = "server",
    responses((status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(app): State<App>) -> ApiResult<Response> {
    let mut names = HashMap::new();
    for id in app.runtime.activity().flows() {
        names.insert(id, flow_name(&app, id).await?);
    }
    let flows = app.runtime.activity().metrics(&names);
    let queues = app.runtime.jobs().queues(NameRange::All).await?;
    let mut page = MetricsPage::default();
    page.add_server(&app.runtime.activity().server());
    page.gauges("windlass_clock_skew_seconds", "How far the wall clock is behind the time of the server.")
        .value(&[], seconds(app.runtime.clock().skew_ms()));
    page.add_store(&app.runtime.store().condition());
    if let Some(redis) = app.runtime.jobs().redis_stats() {
        page.add_redis(redis);
    }
    page.add_runs(&flows);
    page.add_calls(&flows);
    page.add_queues(&queues, app.runtime.clock().now());
    Ok(([(CONTENT_TYPE, TEXT_FORMAT)], page.text()).into_response())
}

/// Flows by name.
type FlowsByName = BTreeMap<String, FlowMetrics>;

/// The metric families of a page, in the order in which they are shown.
#[derive(Default)]
struct MetricsPage {
    families: Vec<MetricFamily>,
}

impl MetricsPage {
    fn counters(&mut self, name: &str, help: &str) -> FamilyWriter<'_> {
        self.family(name, MetricType::COUNTER, help)
    }

    fn gauges(&mut self, name: &str, help: &str) -> FamilyWriter<'_> {
        self.family(name, MetricType::GAUGE, help)
    }

    fn histograms(&mut self, name: &str, help: &str) -> FamilyWriter<'_> {
        self.family(name, MetricType::HISTOGRAM, help)
    }

    fn family(&mut self, name: &str, kind: MetricType, help: &str) -> FamilyWriter<'_> {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        self.families.push(family);
        FamilyWriter(self.families.last_mut().expect("the family was added above"))
    }

    fn text(mut self) -> String {
        // The encoder refuses families without samples.
        self.families.retain(|family| !family.get_metric().is_empty());
        TextEncoder::new().encode_to_string(&self.families).expect("every family has a name and a sample")
    }
}

/// Adds samples to one family.
struct FamilyWriter<'f>(&'f mut MetricFamily);

impl FamilyWriter<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a counter loses its last digits beyond 2^53")]
    fn count(&mut self, labels: &[(&str, &str)], value: u64) {
        self.value(labels, value as f64);
    }

    fn value(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut metric = labeled(labels);
        if self.0.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.0.mut_metric().push(metric);
    }

    fn buckets(&mut self, labels: &[(&str, &str)], buckets: &BucketCounts) {
        let mut metric = labeled(labels);
        metric.set_histogram(buckets.clone());
        self.0.mut_metric().push(metric);
    }
}

fn labeled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

/// The time at each number of calls in progress, as a histogram with one observation per millisecond.
#[expect(
    clippy::cast_precision_loss,
    reason = "a number of calls is far below 2^53, and a sum needs no last digit"
)]
fn levels(found: &Parallelism) -> BucketCounts {
    let mut n_observed: u64 = 0;
    let places = found.ms_at.iter().enumerate();
    let buckets = places.filter_map(|(place, ms)| {
        n_observed = n_observed.saturating_add(*ms);
        let (_, most) = levels_of(place);
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(most? as f64);
        bucket.set_cumulative_count(n_observed);
        Some(bucket)
    });
    let mut counts = BucketCounts::default();
    counts.set_bucket(buckets.collect());
    counts.set_sample_sum(found.busy_ms as f64);
    counts.set_sample_count(found.wall_ms);
    counts
}

#[expect(clippy::cast_precision_loss, reason = "a duration needs no last digit")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

impl MetricsPage {
    fn add_server(&mut self, server: &ServerActivity) {
        let calls = &server.calls;
        self.gauges("windlass_calls_running", "Calls of runs in progress.").count(&[], calls.all.running);
        self.gauges("windlass_calls_waiting", "Calls in a queue that no worker has claimed.")
            .count(&[], calls.n_queued);
        let windows = [("10s", &calls.last_10s), ("1m", &calls.last_minute), ("1h", &calls.last_hour)];
        let mut average =
            self.gauges("windlass_parallelism_average", "Average number of calls in progress in the window.");
        windows.iter().for_each(|(window, found)| average.value(&[("window", window)], found.average()));
        let mut max =
            self.gauges("windlass_parallelism_max", "Maximum number of calls in progress in the window.");
        windows.iter().for_each(|(window, found)| max.count(&[("window", window)], found.max));
        self.histograms("windlass_parallelism", "Calls in progress at once, observed every millisecond.")
            .buckets(&[], &levels(&calls.since_start));
        self.counters("windlass_nodes_ended_total", "Nodes and branches that ended.")
            .count(&[], calls.all.totals.nodes_settled);
        let gauges = [
            ("windlass_runs_in_memory", "Runs in memory.", server.n_hot_runs),
            ("windlass_calls_own", "Calls that this server makes itself.", server.n_own_calls),
            ("windlass_inputs_waiting", "Inputs that wait to be decided.", server.n_inputs),
        ];
        for (name, help, n) in gauges {
            self.gauges(name, help).count(&[], n as u64);
        }
        let mut lost = self
            .counters("windlass_claims_lost_total", "Dispatched jobs that another server had claimed first.");
        lost.count(&[("reason", "taken")], server.n_claims_lost);
        lost.count(&[("reason", "turn")], server.n_turns_lost);
        self.add_process(server);
    }

    fn add_process(&mut self, server: &ServerActivity) {
        let process = &server.process;
        self.gauges("windlass_tasks_alive", "Live tasks of the asynchronous runtime.")
            .count(&[], process.tasks);
        self.gauges("windlass_up_seconds", "Time since the server started.")
            .value(&[], seconds(process.up_ms));
        if let Some(ms) = process.cpu_ms {
            self.counters("process_cpu_seconds_total", "CPU time of the process.").value(&[], seconds(ms));
        }
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory of the process.", process.resident_bytes),
            ("process_open_fds", "Open files of the process.", process.open_files),
            ("process_threads", "Threads of the process.", process.threads),
        ];
        for (name, help, n) in gauges {
            n.into_iter().for_each(|n| self.gauges(name, help).count(&[], n));
        }
    }

    fn add_store(&mut self, condition: &StoreCondition) {
        let mut faults = self.counters(
            "windlass_store_faults_total",
            "Reads and writes of the store that failed below its tables, by kind.",
        );
        for fault in StoreFault::ALL {
            let n = condition.n_faults.get(&fault).copied().unwrap_or_default();
            faults.count(&[("kind", fault.word())], n);
        }
        let n_rows = condition.set_aside.len() as u64 + condition.n_more_set_aside;
        self.gauges("windlass_store_rows_set_aside", "Rows of the store that cannot be read.")
            .count(&[], n_rows);
    }

    fn add_redis(&mut self, redis: RedisStats) {
        let RedisStats { is_up, n_fills, n_outages } = redis;
        self.gauges("windlass_redis_up", "1 while jobs are dispatched through Redis, else 0.")
            .count(&[], u64::from(is_up));
        self.counters("windlass_redis_outages_total", "Outages of Redis.").count(&[], n_outages);
        self.counters("windlass_redis_fills_total", "Queues that were filled from the store into Redis.")
            .count(&[], n_fills);
    }

    fn add_runs(&mut self, flows: &FlowsByName) {
        let mut started = self.counters("windlass_runs_started_total", "Runs that started, by flow.");
        for (flow, FlowMetrics { totals, .. }) in flows {
            started.count(&[("flow", flow)], totals.runs_begun);
        }
        let mut ended = self.counters("windlass_runs_ended_total", "Runs that ended, by flow and status.");
        for (flow, FlowMetrics { totals, .. }) in flows {
            for (status, n) in [
                ("completed", totals.runs_completed),
                ("failed", totals.runs_failed),
                ("canceled", totals.runs_canceled),
            ] {
                ended.count(&[("flow", flow), ("status", status)], n);
            }
        }
        let mut durations = self.histograms("windlass_run_duration_seconds", "Duration of runs, by flow.");
        for (flow, metrics) in flows {
            durations.buckets(&[("flow", flow)], &metrics.run_seconds);
        }
    }

    fn add_calls(&mut self, flows: &FlowsByName) {
        let mut running = self.gauges("windlass_flow_calls_running", "Calls in progress, by flow.");
        for (flow, metrics) in flows {
            running.count(&[("flow", flow)], metrics.running);
        }
        let mut waits =
            self.histograms("windlass_call_wait_seconds", "Time that calls were in a queue, by flow.");
        for (flow, metrics) in flows {
            waits.buckets(&[("flow", flow)], &metrics.wait_seconds);
        }
        let mut left = NODES_MAX;
        let flows: Vec<_> =
            flows.iter().map(|(flow, metrics)| (flow.as_str(), bounded_nodes(metrics, &mut left))).collect();
        let nodes = || {
            flows.iter().flat_map(|(flow, nodes)| nodes.iter().map(|(node, of)| (*flow, node.as_str(), of)))
        };
        let mut ended =
            self.counters("windlass_calls_ended_total", "Attempts at calls, by flow, node and outcome.");
        for (flow, node, of) in nodes() {
            for (outcome, n) in
                [("succeeded", of.succeeded), ("failed", of.failed), ("suspended", of.suspended)]
            {
                ended.count(&[("flow", flow), ("node", node), ("outcome", outcome)], n);
            }
        }
        let mut durations = self
            .histograms("windlass_call_duration_seconds", "Duration of attempts at calls, by flow and node.");
        for (flow, node, of) in nodes() {
            durations.buckets(&[("flow", flow), ("node", node)], &of.work_seconds);
        }
    }

    fn add_queues(&mut self, queues: &[QueueView], now: Timestamp) {
        let queues = bounded_queues(queues.iter().map(|view| QueueGauges::new(view, now)).collect());
        let mut jobs = self.gauges("windlass_queue_jobs", "Open jobs, by queue and state.");
        for queue in &queues {
            for (state, n) in &queue.jobs {
                jobs.count(&[("queue", &queue.name), ("state", state)], *n);
            }
        }
        let mut dead = self.gauges("windlass_queue_dead_letters", "Dead letters, by queue.");
        for queue in &queues {
            dead.count(&[("queue", &queue.name)], queue.n_dead_letters);
        }
        let mut ages = self.gauges(
            "windlass_queue_oldest_seconds",
            "Time for which the oldest due job could have been claimed, by queue.",
        );
        for queue in &queues {
            ages.value(&[("queue", &queue.name)], seconds(queue.oldest_ms));
        }
    }
}

/// The nodes of a flow, or all of them as one when too few labels are left.
fn bounded_nodes<'f>(flow: &'f FlowMetrics, left: &mut usize) -> Cow<'f, BTreeMap<String, NodeMetrics>> {
    if flow.nodes.len() <= *left {
        *left -= flow.nodes.len();
        return Cow::Borrowed(&flow.nodes);
    }
    Cow::Owned(BTreeMap::from([(OTHER_LABEL.to_owned(), flow.all_nodes())]))
}

/// The gauges of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueGauges {
    name: String,
    /// Open jobs by state.
    jobs: BTreeMap<&'static str, u64>,
    n_dead_letters: u64,
    /// The age of the oldest job that can be claimed.
    oldest_ms: u64,
}

impl QueueGauges {
    fn new(view: &QueueView, now: Timestamp) -> Self {
        let depth = &view.depth;
        QueueGauges {
            name: depth.name.clone(),
            jobs: depth.open.iter().map(|(status, n)| (status.word(), *n)).collect(),
            n_dead_letters: depth.n_dead_letters,
            oldest_ms: depth.oldest_due_at.map_or(0, |due| now.since(due)),
        }
    }

    fn n_open(&self) -> u64 {
        self.jobs.values().sum()
    }

    fn add(&mut self, other: QueueGauges) {
        for (state, n) in other.jobs {
            *self.jobs.entry(state).or_default() += n;
        }
        self.n_dead_letters += other.n_dead_letters;
        self.oldest_ms = self.oldest_ms.max(other.oldest_ms);
    }
}

/// The longest queues by themselves, and the others together.
fn bounded_queues(mut queues: Vec<QueueGauges>) -> Vec<QueueGauges> {
    queues.sort_by(|a, b| b.n_open().cmp(&a.n_open()).then_with(|| a.name.cmp(&b.name)));
    let rest = queues.split_off(QUEUES_MAX.min(queues.len()));
    if rest.is_empty() {
        return queues;
    }
    // A queue of this name is one of the others: two samples must not have the same labels.
    let named = queues.iter().position(|queue| queue.name == OTHER_LABEL).map(|at| queues.remove(at));
    let mut others =
        QueueGauges { name: OTHER_LABEL.to_owned(), jobs: BTreeMap::new(), n_dead_letters: 0, oldest_ms: 0 };
    rest.into_iter().chain(named).for_each(|queue| others.add(queue));
    queues.push(others);
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_break_the_page() {
        let mut page = MetricsPage::default();
        page.counters("m", "Help.").count(&[("flow", "a\"b\\c\nd")], 1);
        page.gauges("n", "Help.").value(&[], 0.5);
        let expected = "# HELP m Help.\n# TYPE m counter\nm{flow=\"a\\\"b\\\\c\\nd\"} 1\n\
            # HELP n Help.\n# TYPE n gauge\nn 0.5\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_family_without_samples_is_left_out() {
        let mut page = MetricsPage::default();
        page.gauges("m", "Help.");
        assert_eq!(page.text(), "");
    }

    #[test]
    fn queues_beyond_the_limit_are_added_up() {
        let queue = |n: u64| QueueGauges {
            name: format!("q{n:03}"),
            jobs: [("queued", n)].into(),
            n_dead_letters: 1,
            oldest_ms: n,
        };
        let queues = bounded_queues((0..150).map(queue).collect());
        assert_eq!(queues.len(), QUEUES_MAX + 1);
        assert_eq!(queues[0].name, "q149");
        let other = |n, n_dead_letters, oldest_ms| QueueGauges {
            name: "/other".to_owned(),
            jobs: [("queued", n)].into(),
            n_dead_letters,
            oldest_ms,
        };
        assert_eq!(queues[QUEUES_MAX], other(1_225, 50, 49));
        let queues = bounded_queues((0..150).map(queue).chain([other(1_000, 0, 0)]).collect());
        let others: Vec<&QueueGauges> = queues.iter().filter(|queue| queue.name == OTHER_LABEL).collect();
        assert_eq!((others.len(), others[0].n_open()), (1, 1_000 + 1_275));
    }

    #[test]
    fn a_histogram_has_its_buckets_its_sum_and_its_count() {
        let mut bucket = prometheus::proto::Bucket::default();
        bucket.set_upper_bound(2.5);
        bucket.set_cumulative_count(1);
        let mut buckets = BucketCounts::default();
        buckets.set_bucket(vec![bucket]);
        buckets.set_sample_count(2);
        buckets.set_sample_sum(6.5);
        let mut page = MetricsPage::default();
        page.histograms("t", "Help.").buckets(&[("flow", "f")], &buckets);
        let expected = "# HELP t Help.\n# TYPE t histogram\nt_bucket{flow=\"f\",le=\"2.5\"} 1\n\
            t_bucket{flow=\"f\",le=\"+Inf\"} 2\nt_sum{flow=\"f\"} 6.5\nt_count{flow=\"f\"} 2\n";
        assert_eq!(page.text(), expected);
    }
}
