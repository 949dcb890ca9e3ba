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

/// Who has jobs at this moment, and the most that anybody had.
#[derive(Default)]
struct Watch {
    held: BTreeMap<String, usize>,
    most: BTreeMap<String, usize>,
    done: BTreeSet<JobId>,
}

impl Watch {
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
async fn work(server: Runtime, keys: Arc<BTreeMap<JobId, String>>, watch: Arc<Mutex<Watch>>) {
    let begun = Instant::now();
    while watch.lock().unwrap().done.len() < keys.len() {
        assert!(begun.elapsed() < PATIENCE, "{} of {} done", watch.lock().unwrap().done.len(), keys.len());
        for job in server.claim(claim("q", 2, Duration::from_millis(200))).await.unwrap() {
            let key = &keys[&job.job];
            watch.lock().unwrap().begin(key);
            tokio::time::sleep(Duration::from_millis(3)).await;
            watch.lock().unwrap().end(job.job, key);
            server.finish(vec![done(&job, json!(1))]).await.pop().unwrap().unwrap();
        }
    }
}

async fn worked(limits: QueueLimits, n: usize, n_keys: usize) -> Watch {
    let cluster = Cluster::of(3).await;
    // Everybody knows of it before there is anything to hand out.
    for server in &cluster.servers {
        server.limit_queue("q", limits.clone()).await.unwrap();
    }
    let key = |n: usize| format!("k{}", n % n_keys);
    let specs = (0..n).map(|n| JobSpec { limit_key: key(n), ..spec("q") }).collect();
    let made = cluster.servers[1].create_jobs(specs).await.unwrap();
    let keys = Arc::new(made.iter().enumerate().map(|(n, made)| (made.job, key(n))).collect());
    let watch = Arc::new(Mutex::new(Watch::default()));
    let workers = (0..6).map(|nth| {
        tokio::spawn(work(cluster.servers[nth % 3].clone(), Arc::clone(&keys), Arc::clone(&watch)))
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    Arc::into_inner(watch).unwrap().into_inner().unwrap()
}

#[tokio::test]
async fn no_more_than_the_limit_at_once_whoever_hands_them_out() {
    let watch = worked(QueueLimits { concurrency: Some(3), ..QueueLimits::default() }, 60, 5).await;
    assert_eq!(watch.done.len(), 60);
    assert!(watch.most[""] <= 3, "{:?}", watch.most);
}

#[tokio::test]
async fn no_more_of_a_key_than_its_limit_whoever_hands_them_out() {
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
