//! Time series: once a minute the figures of the last minute are stored, for the whole server and for its busiest queues,
//! so that charts outlive a restart and show all servers. A sample holds counts and the durations as a histogram: samples
//! of several minutes or servers are added without a loss.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;
use windlass_store::page::NameRange;
use windlass_store::sample::{SampleQuery, SampleRow};

use super::Stats;
use super::histogram::DurationHistogram;
use super::window::EventCounts;
use crate::RuntimeError;
use crate::part::{RuntimePart, part};

/// The length of a sample.
pub const SAMPLE_MS: u64 = 60_000;
/// How long samples are kept.
pub const SAMPLES_KEPT: Duration = Duration::from_secs(7 * 86_400);
/// The pause after the end of a minute: commits of the minute are counted by then.
const DELAY_MS: u64 = 2_000;
/// Queues with a sample of their own in one minute, the busiest ones.
const QUEUES_MAX: usize = 50;
/// Queues whose depth is read.
const DEPTHS_MAX: usize = 1_000;

/// Counts and durations of one minute, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventFigures {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub created: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dead: u64,
    /// Durations in milliseconds, with the number of times that each occurred.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    wait: BTreeMap<u64, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    work: BTreeMap<u64, u64>,
}

/// The figures of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SampleFigures {
    /// Rounds of runs: `created` began, `dead` were canceled. Empty for a queue.
    #[serde(default)]
    pub runs: EventFigures,
    /// Attempts at nodes. Empty for a queue.
    #[serde(default)]
    pub calls: EventFigures,
    pub jobs: EventFigures,
    /// Open jobs.
    pub depth: u64,
}

/// The figures of one point of a chart; `None` = no server wrote any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPoint {
    pub at: Timestamp,
    pub figures: Option<SampleFigures>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl EventFigures {
    pub(super) fn new(counts: EventCounts, wait: &DurationHistogram, work: &DurationHistogram) -> Self {
        let EventCounts { created, started, succeeded, failed, dead, suspended: _ } = counts;
        EventFigures { created, started, succeeded, failed, dead, wait: wait.cells(), work: work.cells() }
    }

    pub(super) fn add(&mut self, other: &EventFigures) {
        let EventFigures { created, started, succeeded, failed, dead, wait, work } = other;
        self.created += created;
        self.started += started;
        self.succeeded += succeeded;
        self.failed += failed;
        self.dead += dead;
        for (own, more) in [(&mut self.wait, wait), (&mut self.work, work)] {
            more.iter().for_each(|(ms, n)| *own.entry(*ms).or_default() += n);
        }
    }

    fn is_empty(&self) -> bool {
        *self == EventFigures::default()
    }

    /// The time in a queue that so many percent did not exceed.
    pub fn wait_ms(&self, percent: u64) -> Option<u64> {
        percentile(&self.wait, percent)
    }

    /// The same for the time of work.
    pub fn work_ms(&self, percent: u64) -> Option<u64> {
        percentile(&self.work, percent)
    }
}

fn percentile(cells: &BTreeMap<u64, u64>, percent: u64) -> Option<u64> {
    let n: u64 = cells.values().sum();
    let rank = (n * percent).div_ceil(100).max(1);
    let mut seen = 0;
    cells.iter().find_map(|(ms, n)| {
        seen += n;
        (seen >= rank).then_some(*ms)
    })
}

impl SampleFigures {
    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.calls.is_empty() && self.jobs.is_empty() && self.depth == 0
    }

    fn add(&mut self, other: &SampleFigures) {
        self.runs.add(&other.runs);
        self.calls.add(&other.calls);
        self.jobs.add(&other.jobs);
    }
}

part! {
    /// Writes and reads samples. It keeps no state.
    pub Sampler
}

impl Sampler {
    /// Stores a sample after each minute.
    pub(crate) async fn sample_loop(self) {
        loop {
            let now = self.clock().now();
            let minute = minute_of(now);
            let left = Timestamp(minute.0).after(SAMPLE_MS + DELAY_MS).since(now);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(left)) => {}
                () = self.stopped() => return,
            }
            if let Err(error) = self.sample(minute).await {
                tracing::warn!(%error, "the figures of a minute could not be stored");
            }
        }
    }

    /// Stores the figures of the minute that began at this time.
    pub(crate) async fn sample(&self, minute: Timestamp) -> Result<(), RuntimeError> {
        let names = NameRange::After { name: None, limit: DEPTHS_MAX };
        let depths = self.store().queues(self.project(), names, self.clock().now()).await?;
        let depths = depths.into_iter().map(|queue| (queue.name, queue.open.values().sum::<u64>()));
        let figures = self.stats().minute(minute, depths.collect());
        let row = |(scope, figures): (String, SampleFigures)| SampleRow {
            scope,
            at: minute,
            server: self.owner().server,
            figures: serde_json::to_string(&figures).unwrap_or_default(),
        };
        let rows: Vec<SampleRow> = figures.into_iter().map(row).collect();
        Ok(self.store().save_samples(self.project(), rows).await?)
    }

    /// The points of a chart. The depth of a point is that at its end; counts and durations are those within it.
    pub async fn series(
        &self,
        scope: String,
        since: Timestamp,
        until: Timestamp,
        step_ms: u64,
    ) -> Result<Vec<SeriesPoint>, RuntimeError> {
        let rows = self.store().samples(self.project(), SampleQuery { scope, since, until }).await?;
        let mut points: BTreeMap<i64, SampleFigures> = BTreeMap::new();
        // Every server writes the depth of the same queues: the largest of one minute counts, of the last minute.
        let mut depths: BTreeMap<i64, (Timestamp, u64)> = BTreeMap::new();
        let step = i64::try_from(step_ms).unwrap_or(i64::MAX).max(1);
        let start = |at: Timestamp| since.0 + (at.0 - since.0).div_euclid(step) * step;
        for row in rows {
            let Ok(figures) = serde_json::from_str::<SampleFigures>(&row.figures) else { continue };
            let at = start(row.at);
            points.entry(at).or_default().add(&figures);
            let depth = depths.entry(at).or_insert((row.at, figures.depth));
            *depth = match row.at.cmp(&depth.0) {
                std::cmp::Ordering::Greater => (row.at, figures.depth),
                std::cmp::Ordering::Equal => (row.at, depth.1.max(figures.depth)),
                std::cmp::Ordering::Less => *depth,
            };
        }
        let mut series = Vec::new();
        let mut at = since.0;
        while at < until.0 {
            let figures = points.remove(&at).map(|figures| SampleFigures {
                depth: depths.get(&at).map_or(0, |(_, depth)| *depth),
                ..figures
            });
            series.push(SeriesPoint { at: Timestamp(at), figures });
            at += step;
        }
        Ok(series)
    }
}

/// The beginning of the minute of this time.
fn minute_of(at: Timestamp) -> Timestamp {
    let length = SAMPLE_MS.cast_signed();
    Timestamp(at.0.div_euclid(length) * length)
}

impl Stats {
    /// The figures of a minute, by subject: the server under the empty name, and its busiest queues.
    fn minute(&self, minute: Timestamp, depths: BTreeMap<String, u64>) -> Vec<(String, SampleFigures)> {
        let (runs, calls) = self.lock().all.minute(minute);
        let mut queues: BTreeMap<String, SampleFigures> = BTreeMap::new();
        for (name, jobs) in self.queues.minute(minute) {
            queues.entry(name).or_default().jobs = jobs;
        }
        for (name, depth) in depths {
            queues.entry(name).or_default().depth = depth;
        }
        let mut whole = SampleFigures { runs, calls, ..SampleFigures::default() };
        for queue in queues.values() {
            whole.jobs.add(&queue.jobs);
            whole.depth += queue.depth;
        }
        let mut queues: Vec<(String, SampleFigures)> =
            queues.into_iter().filter(|(_, figures)| !figures.is_empty()).collect();
        queues.sort_by_key(|(_, figures)| {
            std::cmp::Reverse((figures.jobs.created + figures.jobs.started, figures.depth))
        });
        queues.truncate(QUEUES_MAX);
        queues.push((String::new(), whole));
        queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(work: &[(u64, u64)]) -> EventFigures {
        EventFigures { succeeded: 1, work: work.iter().copied().collect(), ..EventFigures::default() }
    }

    #[test]
    fn durations_of_several_minutes_have_the_percentiles_of_all() {
        let mut sum = figures(&[(10, 50), (20, 45)]);
        sum.add(&figures(&[(20, 3), (900, 2)]));
        assert_eq!(
            (sum.succeeded, sum.work_ms(50), sum.work_ms(95), sum.work_ms(99)),
            (2, Some(10), Some(20), Some(900))
        );
        assert_eq!(sum.wait_ms(50), None);
    }

    #[test]
    fn a_sample_reads_back_as_it_was_written() {
        let figures = SampleFigures { jobs: figures(&[(7, 2)]), depth: 3, ..SampleFigures::default() };
        let text = serde_json::to_string(&figures).unwrap();
        assert!(text.len() < 80, "{text}");
        assert_eq!(serde_json::from_str::<SampleFigures>(&text).unwrap(), figures);
    }
}
