//! The repair of stored times that a wrong clock wrote.

use windlass_engine::counter::Seq;
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::project::Project;
use windlass_store::Store;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::queue::Spent;
use windlass_store::run::{Origin, RunProjection, RunRef, RunStatus};
use windlass_store::server::ServerRow;
use windlass_store::store::SetBack;

use crate::fixture::{StoreFixture, at, job_id, run_id, server, undelivered};

pub async fn stored_times_that_are_ahead_are_set_back(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, ms) in [(1, 50), (2, 9_000)] {
        let (name, version) = (String::new(), String::new());
        let (owner, started_at, worker_ttl_ms) = (server(n, n), at(5), 15_000);
        let row = ServerRow { owner, name, version, started_at, beat_at: at(ms), worker_ttl_ms };
        store.save_server(row).await.unwrap();
    }
    let waits =
        |until| move |_: &mut Origin, projection: &mut RunProjection| projection.wake_at = Some(at(until));
    fixture.create(1, RunStatus::Waiting, at(50), waits(20_000)).await.unwrap();
    fixture.create(2, RunStatus::Waiting, at(9_000), waits(20_000)).await.unwrap();
    fixture.create(3, RunStatus::Completed, at(9_000), |_, _| {}).await.unwrap();
    let keyed = JobSpec { dedup_key: "one".to_owned(), unique_for_ms: 1_000, ..JobSpec::new("work", "q") };
    fixture.create_job(1, keyed.clone(), at(9_000)).await.unwrap();
    fixture.submit(1, JobInput::Cancel, at(9_000)).await.unwrap();
    let (id, to) = (MessageId::new(Party::Run(run_id(2)), Seq(1)), Party::Run(run_id(1)));
    let message = Message { id, to, at: at(9_000), note: Note::BalanceChanged };
    let messages = vec![message];
    fixture
        .commit(Commit { messages, ..Commit::new(&Project::DEFAULT, fixture.command(), at(9_000)) })
        .await
        .unwrap();
    let spent = Spent { queue: "q".to_owned(), limit_key: String::new(), full_at: at(9_000) };
    store.save_spent(&Project::DEFAULT, vec![spent], at(50)).await.unwrap();

    let done = store.set_back(at(100)).await.unwrap();
    let expected = SetBack {
        n_servers: 1,
        n_runs: 2,
        n_jobs: 1,
        n_messages: 1,
        n_rates: 1,
        n_commands: done.n_commands,
        ..SetBack::default()
    };
    assert_eq!(done, expected);
    let beats = store.servers().await.unwrap().into_iter().map(|row| row.beat_at);
    assert_eq!(beats.collect::<Vec<_>>(), [at(50), at(100)]);
    let run = async |n| store.run(&Project::DEFAULT, RunRef::Id(run_id(n))).await.unwrap().unwrap();
    let kept = run(1).await;
    assert_eq!((kept.projection.wake_at, kept.projection.updated_at), (Some(at(20_000)), at(50)));
    let woken = run(2).await;
    assert_eq!((woken.projection.wake_at, woken.projection.updated_at), (Some(at(100)), at(100)));
    assert_eq!(woken.origin.created_at, at(100));
    let ended = run(3).await.projection;
    assert_eq!((ended.ended_at, ended.wake_at), (Some(at(100)), None));
    let due = store.due(at(100), 10).await.unwrap().runs;
    assert_eq!(due.iter().map(|wake| wake.id).collect::<Vec<_>>(), [run_id(2)]);
    assert_eq!(undelivered(store, at(100), 10).await.len(), 1);
    assert!(store.spent(&Project::DEFAULT).await.unwrap().iter().all(|spent| spent.full_at <= at(100)));
    let job = store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap().job;
    assert_eq!((job.created_at, job.updated_at), (at(100), at(100)));
    assert!(
        fixture.create_job(2, keyed.clone(), at(1_099)).await.is_err(),
        "its key is held as long as before"
    );
    fixture.create_job(3, keyed, at(1_100)).await.unwrap();
    let again = store.set_back(at(5_000)).await.unwrap();
    assert_eq!(SetBack { n_commands: 0, ..again }, SetBack::default(), "nothing is ahead any more");
}
