//! Limits of queues hold for all servers together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_engine::id::JobId;
use windlass_engine::job::JobSpec;
use windlass_runtime::Runtime;
use windlass_store::queue::{QueueLimits, Rate};

use crate::cluster::{Cluster, PATIENCE, claim, done, spec};

/// Running jobs at this moment, and the largest number so far.
#[derive(Default)]
struct SharedLimitWatch {
    held: BTreeMap<String, usize>,
    most: BTreeMap<String, usize>,
    done: BTreeSet<JobId>,
}

impl SharedLimitWatch {
    fn begin(&mut self, key: &str) {
        for key in ["", key] {
            let held = self.held.entry(key.to_owned()).or_default();
            *held += 1;
            let most = self.most.entry(key.to_owned()).or_default();
            *most = (*held).max(*most);
        }
    }

    fn end(&mut self, job: JobId, key: &str) {
        assert!(self.done.insert(job), "{job} was done twice");
        for key in ["", key] {
            *self.held.get_mut(key).unwrap() -= 1;
        }
    }
}

/// Works until all are done.
async fn work(server: Runtime, keys: Arc<BTreeMap<JobId, String>>, watch: Arc<Mutex<SharedLimitWatch>>) {
    let begun = Instant::now();
    while watch.lock().unwrap().done.len() < keys.len() {
        assert!(begun.elapsed() < PATIENCE, "{} of {} done", watch.lock().unwrap().done.len(), keys.len());
        for job in server.jobs().claim(claim("q", 2, Duration::from_millis(200))).await.unwrap() {
            let key = &keys[&job.job];
            watch.lock().unwrap().begin(key);
            tokio::time::sleep(Duration::from_millis(3)).await;
            watch.lock().unwrap().end(job.job, key);
            server.jobs().finish(vec![done(&job, json!(1))]).await.pop().unwrap().unwrap();
        }
    }
}

async fn worked(limits: QueueLimits, n: usize, n_keys: usize) -> SharedLimitWatch {
    let cluster = Cluster::of(3).await;
    // All servers know the limit before the first job is there.
    for server in &cluster.servers {
        server.jobs().limit_queue("q", limits.clone()).await.unwrap();
    }
    let key = |n: usize| format!("k{}", n % n_keys);
    let specs = (0..n).map(|n| JobSpec { limit_key: key(n), ..spec("q") }).collect();
    let made = cluster.servers[1].jobs().create_jobs(specs).await.unwrap();
    let keys = Arc::new(made.iter().enumerate().map(|(n, made)| (made.job, key(n))).collect());
    let watch = Arc::new(Mutex::new(SharedLimitWatch::default()));
    let workers = (0..6).map(|nth| {
        tokio::spawn(work(cluster.servers[nth % 3].clone(), Arc::clone(&keys), Arc::clone(&watch)))
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    Arc::into_inner(watch).unwrap().into_inner().unwrap()
}

#[tokio::test]
async fn all_servers_together_keep_the_limit_of_a_queue() {
    let watch = worked(QueueLimits { concurrency: Some(3), ..QueueLimits::default() }, 60, 5).await;
    assert_eq!(watch.done.len(), 60);
    assert!(watch.most[""] <= 3, "{:?}", watch.most);
}

#[tokio::test]
async fn all_servers_together_keep_the_limit_of_a_key() {
    let watch = worked(QueueLimits { key_concurrency: Some(1), ..QueueLimits::default() }, 40, 4).await;
    assert!(watch.most.iter().all(|(key, most)| key.is_empty() || *most == 1), "{:?}", watch.most);
}

#[tokio::test]
async fn a_rate_is_that_of_all_servers_together() {
    let begun = Instant::now();
    let rate = Rate { count: 20, per_ms: 1_000, burst: Some(5) };
    let watch = worked(QueueLimits { rate: Some(rate), ..QueueLimits::default() }, 35, 1).await;
    assert_eq!(watch.done.len(), 35);
    // Five at once, and thirty in the time that they need.
    assert!(begun.elapsed() >= Duration::from_millis(1_400), "{:?}", begun.elapsed());
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}
