//! Limits of queues, and their pause.
//!
//! The dispatcher keeps the limits, from the claims and ends that it sees anyway. Servers on a shared store claim
//! from such a queue in turns (`claim/turn.rs`), so the limits are exact for all of them together.

use windlass_engine::problem::{Problem, Problems};
use windlass_store::page::NameRange;
use windlass_store::queue::{QueueLimits, QueueSettings, Rate};

use crate::RuntimeError;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

/// The longest period of a rate: a day. Rarer work is a schedule.
pub const RATE_MS_MAX: u32 = 86_400_000;

/// Why the limits of a queue stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// Everything that is wrong; paths begin with `$.`.
    #[error("the limits cannot be set: {}", list(.0))]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Jobs {
    /// Sets the limits of a queue; running jobs go on, and count.
    pub async fn limit_queue(&self, name: &str, limits: QueueLimits) -> Result<(), LimitError> {
        self.change_queue(name, move |settings| settings.limits = limits).await
    }

    /// Pauses or resumes a queue. Running jobs go on.
    pub async fn pause_queue(&self, queue: &str, is_paused: bool) -> Result<(), RuntimeError> {
        let change = move |settings: &mut QueueSettings| {
            settings.is_paused = is_paused;
            Ok(())
        };
        self.set_queue(queue, change).await
    }

    /// Changes a part of a queue's settings in one write; concurrent changes of other parts stay.
    pub async fn change_queue(
        &self,
        name: &str,
        change: impl FnOnce(&mut QueueSettings) + Send + 'static,
    ) -> Result<(), LimitError> {
        let checked = move |settings: &mut QueueSettings| {
            change(settings);
            let problems = problems(&settings.limits);
            if problems.is_empty() { Ok(()) } else { Err(LimitError::Problems(problems)) }
        };
        self.set_queue(name, checked).await
    }

    /// On a task of its own, so that a dropped request leaves no difference between the store and the dispatcher.
    async fn set_queue<E: From<RuntimeError> + Send + 'static>(
        &self,
        name: &str,
        change: impl FnOnce(&mut QueueSettings) -> Result<(), E> + Send + 'static,
    ) -> Result<(), E> {
        let (jobs, name) = (self.clone(), name.to_owned());
        let changed = self.tasks().spawn(async move { jobs.write_queue(name, change).await });
        changed.await.unwrap_or_else(|_broken| Err(RuntimeError::Broken.into()))
    }

    async fn write_queue<E: From<RuntimeError>>(
        &self,
        name: String,
        change: impl FnOnce(&mut QueueSettings) -> Result<(), E>,
    ) -> Result<(), E> {
        let _alone = self.state().settings.lock().await;
        let now = self.clock().now();
        let one = NameRange::One(name.clone());
        let depth = self.store().queues(self.project(), one, now).await.map_err(RuntimeError::from)?.pop();
        let (is_paused, limits) = depth.map(|depth| (depth.is_paused, depth.limits)).unwrap_or_default();
        let mut settings = QueueSettings { name, is_paused, limits, updated_at: now };
        change(&mut settings)?;
        self.store().save_queue(self.project(), settings.clone()).await.map_err(RuntimeError::from)?;
        self.state().dispatch.limit(&settings.name, settings.limits, now);
        self.state().dispatch.pause(&settings.name, settings.is_paused);
        if let Some(relay) = self.state().relay.as_ref().filter(|_| !settings.is_paused) {
            // Jobs that were popped during the pause are no longer in Redis.
            relay.want(&settings.name);
        }
        self.state().sooner.notify_one();
        Ok(())
    }
}

/// Every problem of the limits, each with the field as clients spell it and the allowed values.
fn problems(limits: &QueueLimits) -> Vec<Problem> {
    let mut problems = Problems::default();
    let QueueLimits { concurrency, rate, key_concurrency, key_rate, fair: _ } = limits;
    for (path, concurrency) in [("$.concurrency", concurrency), ("$.key_concurrency", key_concurrency)] {
        if *concurrency == Some(0) {
            problems.error(path, "it must be at least 1; pause the queue to hand out nothing");
        }
    }
    for (path, rate) in [("$.rate", rate), ("$.key_rate", key_rate)] {
        let Some(Rate { count, per_ms, burst }) = rate else { continue };
        if *count == 0 {
            problems
                .error(format!("{path}.count"), "it must be at least 1; pause the queue to hand out nothing");
        }
        if *per_ms == 0 || *per_ms > RATE_MS_MAX {
            let reason = format!("{per_ms} is out of range, 1 to {RATE_MS_MAX} (one day) are allowed");
            problems.error(format!("{path}.per_ms"), reason);
        }
        if *burst == Some(0) {
            problems.error(format!("{path}.burst"), "it must be at least 1; leave it out for `count`");
        }
    }
    problems.into_list()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_limit_is_named_at_once() {
        let rate = |count, per_ms, burst| Some(Rate { count, per_ms, burst });
        let bad = QueueLimits {
            concurrency: Some(0),
            rate: rate(0, 0, Some(0)),
            key_concurrency: Some(0),
            key_rate: rate(1, RATE_MS_MAX + 1, None),
            fair: true,
        };
        let paths: Vec<String> = problems(&bad).into_iter().map(|problem| problem.path).collect();
        let expected = [
            "$.concurrency",
            "$.key_concurrency",
            "$.key_rate.per_ms",
            "$.rate.burst",
            "$.rate.count",
            "$.rate.per_ms",
        ];
        assert_eq!(paths, expected);
        let good = QueueLimits { rate: rate(1, RATE_MS_MAX, Some(1)), ..QueueLimits::default() };
        assert_eq!(problems(&good), []);
    }
}
