//! New jobs.

use windlass_store::job::JobQuery;
use windlass_store::page::Part;

use super::*;

fn keyed(key: &str) -> JobSpec {
    JobSpec { dedup_key: key.to_owned(), ..spec("q") }
}

fn paths(error: CreateError) -> Vec<String> {
    match error {
        CreateError::Problems(problems) => problems.into_iter().map(|problem| problem.path).collect(),
        error @ (CreateError::InsufficientFunds { .. } | CreateError::Runtime(_)) => panic!("{error}"),
    }
}

impl Runtime {
    async fn n_jobs(&self) -> u64 {
        let part = Part { count: true, ..Part::default() };
        self.store()
            .jobs(self.project(), JobQuery { part, ..JobQuery::default() })
            .await
            .unwrap()
            .total
            .unwrap()
    }
}

#[tokio::test]
async fn a_new_job_is_durable_and_can_be_claimed() {
    let server = on_disk().await;
    let created = server.jobs().create_job(spec("q")).await.unwrap();
    assert_eq!((created.status, created.created), (JobStatus::Queued, true));
    assert_eq!(server.status(created.job).await, JobStatus::Queued);
    assert_eq!(server.take_one("q").await.job, created.job);
    let run_at = Some(server.clock().now().after(60_000));
    let later = server.jobs().create_job(JobSpec { run_at, ..spec("q") }).await.unwrap();
    assert_eq!(later.status, JobStatus::Pending);
    let past = server.jobs().create_job(JobSpec { run_at: Some(Timestamp(5)), ..spec("q") }).await.unwrap();
    assert_eq!(past.status, JobStatus::Queued);
}

#[tokio::test]
async fn a_batch_is_answered_and_handed_out_in_order() {
    let server = on_disk().await;
    let priorities = [0, 3, 0, 3, -1];
    let specs = priorities.map(|priority| JobSpec { priority, ..spec("q") }).to_vec();
    let created: Vec<JobId> =
        server.jobs().create_jobs(specs).await.unwrap().into_iter().map(|created| created.job).collect();
    let claimed: Vec<JobId> = server.take("q", 9).await.iter().map(|claimed| claimed.job).collect();
    assert_eq!(claimed, [1, 3, 0, 2, 4].map(|at: usize| created[at]));
}

#[tokio::test]
async fn a_large_batch_is_one_commit_and_comes_in_order() {
    let store = Arc::new(Sqlite::temporary(Durability::Fast).unwrap());
    let server = Runtime::start_up(store.clone(), Settings::default()).await.unwrap();
    let before = store.n_transactions();
    let created = server.jobs().create_jobs((0..2_000).map(|_| keyed("")).collect()).await.unwrap();
    assert!(store.n_transactions() <= before + 3, "the server's own signs of life aside");
    let mut claimed = Vec::new();
    while claimed.len() < 2_000 {
        claimed.extend(server.take("q", 700).await.iter().map(|claimed| claimed.job));
    }
    assert_eq!(claimed, created.iter().map(|created| created.job).collect::<Vec<_>>());
}

#[tokio::test]
async fn everything_wrong_with_a_batch_is_said_and_nothing_is_written() {
    let server = on_disk().await;
    let nobody = Some("nobody".to_owned());
    let specs = vec![
        spec("q"),
        JobSpec { max_retries: 9_999, ..spec("two words") },
        JobSpec { account: nobody.clone(), ..spec("q") },
    ];
    let expected = ["$[1].max_retries", "$[1].queue_name", "$[2].account"];
    assert_eq!(paths(server.jobs().create_jobs(specs).await.unwrap_err()), expected);
    assert_eq!(server.n_jobs().await, 0);
    assert_eq!(
        paths(server.jobs().create_job(JobSpec { account: nobody, ..spec("q") }).await.unwrap_err()),
        ["$.account"]
    );
    assert_eq!(paths(server.jobs().create_job(spec("")).await.unwrap_err()), ["$.queue_name"]);
}

#[tokio::test]
async fn a_batch_has_a_size() {
    let server = server().await;
    assert_eq!(paths(server.jobs().create_jobs(Vec::new()).await.unwrap_err()), ["$"]);
    let many = (0..=BATCH_MAX).map(|_| JobSpec::new("work", "q")).collect();
    let error = server.jobs().create_jobs(many).await.unwrap_err();
    let CreateError::Problems(problems) = error else { panic!("{error}") };
    assert_eq!(problems[0].reason, "there are 10001 jobs in it; 1 to 10000 are allowed at once");
    assert_eq!(server.n_jobs().await, 0);
}

#[tokio::test]
async fn an_account_that_is_there_is_fine() {
    let server = server().await;
    let now = server.clock().now();
    server.store().open_account(server.project(), "payer", "Payer", now).await.unwrap();
    let paid = JobSpec { account: Some("payer".to_owned()), ..spec("q") };
    assert!(server.jobs().create_job(paid.clone()).await.unwrap().created);
    assert!(server.jobs().create_jobs(vec![paid]).await.unwrap()[0].created);
}

#[tokio::test]
async fn the_same_key_answers_with_the_job_that_is_there() {
    let server = on_disk().await;
    let first = server.jobs().create_job(keyed("k")).await.unwrap();
    let claimed = server.take_one("q").await;
    let again = server.jobs().create_job(keyed("k")).await.unwrap();
    assert_eq!(again, CreatedJob { job: first.job, status: JobStatus::Running, created: false });
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Ok);
    assert!(server.jobs().create_job(keyed("k")).await.unwrap().created, "it has ended");
    assert!(
        server.jobs().create_job(JobSpec { dedup_key: "k".to_owned(), ..spec("r") }).await.unwrap().created
    );
}

#[tokio::test]
async fn a_key_can_outlive_its_job() {
    let server = on_disk().await;
    let unique = || JobSpec { unique_for_ms: 60_000, ..keyed("k") };
    let first = server.jobs().create_job(unique()).await.unwrap();
    let claimed = server.take_one("q").await;
    server.say(done(&claimed, json!(1))).await;
    let again = server.jobs().create_job(unique()).await.unwrap();
    assert_eq!(again, CreatedJob { job: first.job, status: JobStatus::Completed, created: false });
}

#[tokio::test]
async fn duplicates_in_a_batch_are_the_first_of_them() {
    let server = on_disk().await;
    let there = server.jobs().create_job(keyed("a")).await.unwrap().job;
    let keys = ["a", "b", "", "b", "a", "c", ""];
    let created = server.jobs().create_jobs(keys.map(keyed).to_vec()).await.unwrap();
    assert_eq!(
        created.iter().map(|one| one.created).collect::<Vec<_>>(),
        [false, true, true, false, false, true, true]
    );
    assert_eq!([created[0].job, created[4].job], [there, there]);
    assert_eq!(created[3].job, created[1].job);
    assert_eq!(server.n_jobs().await, 5);
    assert_eq!(server.take("q", 99).await.len(), 5);
}

#[tokio::test]
async fn ten_thousand_duplicates_cost_two_commits() {
    let store = Arc::new(Sqlite::temporary(Durability::Fast).unwrap());
    let server = Runtime::start_up(store.clone(), Settings::default()).await.unwrap();
    let keys =
        || (0..BATCH_MAX).map(|n| JobSpec { dedup_key: format!("k{}", n / 2), ..JobSpec::new("work", "q") });
    let before = store.n_transactions();
    let first = server.jobs().create_jobs(keys().collect()).await.unwrap();
    assert_eq!(first.iter().filter(|one| one.created).count(), BATCH_MAX / 2);
    let second = server.jobs().create_jobs(keys().collect()).await.unwrap();
    assert!(second.iter().all(|one| !one.created));
    assert_eq!(
        second.iter().map(|one| one.job).collect::<Vec<_>>(),
        first.iter().map(|one| one.job).collect::<Vec<_>>()
    );
    assert!(store.n_transactions() < before + 30, "{} transactions", store.n_transactions() - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_creations_with_one_key_succeeds() {
    let server = on_disk().await;
    let create = |n: usize| {
        let server = server.clone();
        async move {
            if n.is_multiple_of(2) {
                vec![server.jobs().create_job(keyed("k")).await.unwrap()]
            } else {
                server.jobs().create_jobs(vec![keyed("k"), keyed("other"), keyed("k")]).await.unwrap()
            }
        }
    };
    let all: Vec<_> = (0..60).map(|n| tokio::spawn(create(n))).collect();
    let mut created = Vec::new();
    for one in all {
        created.extend(one.await.unwrap());
    }
    assert_eq!(created.iter().filter(|one| one.created).count(), 2);
    assert_eq!(created.iter().map(|one| one.job).collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(server.n_jobs().await, 2);
}

#[tokio::test]
async fn a_job_with_a_dropped_request_is_handed_out_all_the_same() {
    let server = on_disk().await;
    let mut gone = Box::pin(server.jobs().create_job(spec("q")));
    let begun = std::future::poll_fn(|context| Poll::Ready(gone.as_mut().poll(context)));
    assert!(begun.await.is_pending());
    drop(gone);
    server.take_one("q").await;
}

#[tokio::test]
async fn a_server_that_shuts_down_creates_nothing() {
    let server = server().await;
    server.shut_down(Duration::ZERO).await;
    let one = server.jobs().create_job(spec("q")).await;
    assert!(matches!(one, Err(CreateError::Runtime(RuntimeError::Draining))));
    assert!(server.jobs().create_jobs(vec![spec("q")]).await.is_err());
    assert!(matches!(server.jobs().cancel_job(JobId::new(Uuid::now_v7())).await, Err(JobError::Runtime(_))));
}
