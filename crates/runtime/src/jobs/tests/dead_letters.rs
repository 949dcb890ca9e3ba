//! Dead letters.

use windlass_engine::counter::Fence;
use windlass_engine::job::{JobRefusal, State};
use windlass_store::job::JobQuery;
use windlass_store::page::{Order, Part};

use super::*;

fn replay(letters: DeadLetterSelector, id: &str) -> ReplayRequest {
    let queue = "q".to_owned();
    ReplayRequest { queue, letters, id: id.to_owned(), priority: None, patch: None, per_second: None }
}

fn one_try() -> JobSpec {
    JobSpec { max_retries: 1, ..spec("q") }
}

impl Runtime {
    /// Jobs that have failed for good, in order.
    async fn dead_ones(&self, n: usize, spec: JobSpec, reason: &str) -> Vec<JobId> {
        let created = self.jobs().create_jobs((0..n).map(|_| spec.clone()).collect()).await.unwrap();
        let claimed = self.take(&spec.queue, n).await;
        assert_eq!(claimed.len(), n);
        let fault = Fault::new(FaultKind::Error, reason);
        let ends = claimed.iter().map(|claimed| end(claimed, CallOutcome::Failed(fault.clone()))).collect();
        assert!(self.jobs().finish(ends).await.into_iter().all(|answer| answer.unwrap() == ClaimVerdict::Ok));
        created.into_iter().map(|created| created.job).collect()
    }

    async fn letters(&self, queue: &str) -> Vec<JobId> {
        let part = Part { order: Order::Oldest, limit: 1_000, ..Part::default() };
        let is_dead_letter = Some(true);
        let query = JobQuery { queue: Some(queue.to_owned()), is_dead_letter, part, ..JobQuery::default() };
        self.store().jobs(self.project(), query).await.unwrap().items.iter().map(JobRow::id).collect()
    }

    async fn state(&self, job: JobId) -> State {
        self.store().job(self.project(), job).await.unwrap().unwrap().job.state
    }
}

#[tokio::test]
async fn the_oldest_letters_are_tried_again_as_asked() {
    let server = on_disk().await;
    let dead = server.dead_ones(5, one_try(), "no").await;
    assert_eq!(server.letters("q").await, dead);
    let patch = Some(json!({"n": null, "extra": {"deep": true}}));
    let replay = ReplayRequest { priority: Some(7), patch, ..replay(DeadLetterSelector::Oldest(3), "r") };
    let moved = server.jobs().dead_letters().replay(replay).await.unwrap();
    assert_eq!(moved, MovedDeadLetters { moved: dead[..3].to_vec(), refused: Vec::new() });
    assert_eq!(server.letters("q").await, dead[3..]);
    let claimed = server.take("q", 9).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.job).collect::<Vec<_>>(), dead[..3]);
    assert_eq!((claimed[0].attempt, claimed[0].fence, claimed[0].priority), (2, Fence(2), 7));
    assert_eq!(claimed[0].input, json!({"extra": {"deep": true}}));
    assert_eq!(server.say(done(&claimed[0], json!("now"))).await, ClaimVerdict::Ok);
    let attempts = server.store().attempts(server.project(), dead[0], 0, 9).await.unwrap();
    assert_eq!(
        attempts.iter().map(|attempt| attempt.status.word()).collect::<Vec<_>>(),
        ["failed", "succeeded"]
    );
}

#[tokio::test]
async fn the_same_replay_again_moves_nothing_again() {
    let server = on_disk().await;
    let dead = server.dead_ones(3, one_try(), "no").await;
    let moved =
        server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(2), "r")).await.unwrap();
    assert_eq!(moved.moved, dead[..2]);
    let again =
        server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(2), "r")).await.unwrap();
    assert_eq!(again, MovedDeadLetters::default());
    assert_eq!(server.letters("q").await, dead[2..], "not the next ones either");
    let ids = || replay(DeadLetterSelector::Ids(vec![dead[2], dead[2]]), "s");
    assert_eq!(server.jobs().dead_letters().replay(ids()).await.unwrap().moved, dead[2..]);
    let claimed = server.take("q", 9).await;
    let failed = CallOutcome::Failed(Fault::new(FaultKind::Error, "again"));
    server.jobs().finish(claimed.iter().map(|claimed| end(claimed, failed.clone())).collect()).await;
    assert_eq!(server.letters("q").await, dead, "they died again");
    assert_eq!(server.jobs().dead_letters().replay(ids()).await.unwrap(), MovedDeadLetters::default());
    assert_eq!(
        server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(9), "t")).await.unwrap().moved,
        dead
    );
}

#[tokio::test]
async fn a_replay_that_was_cut_short_goes_on_where_it_stopped() {
    let server = on_disk().await;
    let dead = server.dead_ones(260, one_try(), "no").await;
    let request = || ReplayRequest { per_second: Some(100), ..replay(DeadLetterSelector::Oldest(230), "r") };
    // The state after a server that died after the first part.
    let mut first = MovedDeadLetters::default();
    let action = super::super::dead_letter::DeadLetterAction::Replay {
        replay: request(),
        since: server.clock().now(),
    };
    let mut rows = Vec::new();
    for id in &dead[..100] {
        rows.extend(server.store().job(server.project(), *id).await.unwrap());
    }
    server
        .jobs()
        .dead_letters()
        .move_part(rows, &action, action.command(server.project(), "0"), &mut first)
        .await
        .unwrap();
    assert_eq!(first.moved, dead[..100]);
    let begun = server.clock().now();
    let rest = server.jobs().dead_letters().replay(request()).await.unwrap();
    assert_eq!(rest.moved, dead[100..230]);
    let State::Pending { until } = server.state(dead[100]).await else { panic!("it is to wait") };
    assert!(until >= begun.after(1_000), "those that were moved before have their second");
    assert_eq!(server.letters("q").await, dead[230..]);
    assert_eq!(server.jobs().dead_letters().replay(request()).await.unwrap(), MovedDeadLetters::default());
}

#[tokio::test]
async fn letters_that_are_named_are_looked_at_one_by_one() {
    let server = on_disk().await;
    let dead = server.dead_ones(3, one_try(), "no").await;
    let elsewhere = server.dead_ones(1, JobSpec { max_retries: 1, ..spec("other") }, "no").await[0];
    let queued = server.jobs().create_job(spec("q")).await.unwrap().job;
    let cancelled = server.jobs().create_job(spec("q")).await.unwrap().job;
    server.jobs().cancel_job(cancelled).await.unwrap();
    let unknown = JobId::new(Uuid::now_v7());
    server
        .jobs()
        .dead_letters()
        .discard("q", DeadLetterSelector::Ids(vec![dead[1]]), "no use")
        .await
        .unwrap();
    let ids = vec![dead[2], elsewhere, queued, unknown, cancelled, dead[1], dead[0]];
    let moved = server.jobs().dead_letters().replay(replay(DeadLetterSelector::Ids(ids), "r")).await.unwrap();
    assert_eq!(moved.moved, [dead[2], dead[0]]);
    let not_dead = |status| Some(JobRefusal::NotDead { status });
    let mut expected = vec![
        (elsewhere, None),
        (unknown, None),
        (queued, Some(JobRefusal::NotEnded { status: "queued" })),
        (cancelled, not_dead("canceled")),
        (dead[1], not_dead("failed")),
    ];
    let mut refused = moved.refused;
    expected.sort_by_key(|(id, _)| *id);
    refused.sort_by_key(|(id, _)| *id);
    assert_eq!(refused, expected);
    assert_eq!(server.status(cancelled).await, JobStatus::Canceled);
    assert_eq!(server.letters("other").await, [elsewhere]);
}

#[tokio::test]
async fn a_group_is_replayed_without_the_others() {
    let server = on_disk().await;
    let full = server.dead_ones(3, one_try(), "disk 7 is full").await;
    let slow = server.dead_ones(1, one_try(), "disk is slow").await;
    let more = server.dead_ones(1, one_try(), "disk 12 is full").await;
    let groups = server.jobs().dead_letters().groups("q").await.unwrap();
    assert_eq!(groups.iter().map(|group| group.n).collect::<Vec<_>>(), [4, 1]);
    assert_eq!((groups[0].latest, groups[0].reason.message.as_str()), (more[0], "disk 12 is full"));
    let fingerprint = groups[0].fingerprint.clone();
    let group = |max| DeadLetterSelector::Group { fingerprint: fingerprint.clone(), max };
    let moved = server.jobs().dead_letters().replay(replay(group(2), "r")).await.unwrap();
    assert_eq!(moved.moved, full[..2]);
    let moved = server.jobs().dead_letters().replay(replay(group(99), "s")).await.unwrap();
    assert_eq!(moved.moved, [full[2], more[0]]);
    assert_eq!(server.letters("q").await, slow);
}

#[tokio::test]
async fn a_slow_replay_is_spread_over_time() {
    let server = on_disk().await;
    let dead = server.dead_ones(120, one_try(), "no").await;
    let begun = server.clock().now();
    let slow = ReplayRequest { per_second: Some(10), ..replay(DeadLetterSelector::Oldest(120), "r") };
    assert_eq!(server.jobs().dead_letters().replay(slow).await.unwrap().moved, dead);
    let ended = server.clock().now();
    assert!(matches!(server.state(dead[0]).await, State::Queued { .. }));
    // The first ones may be due by now, those ten seconds away are not.
    for (n, id) in dead.iter().enumerate().skip(100) {
        let State::Pending { until } = server.state(*id).await else { panic!("it is to wait") };
        let after = n as u64 * 100;
        assert!(begun.after(after) <= until && until <= ended.after(after), "{n}");
    }
    let claimed = server.take_one("q").await;
    assert_eq!(claimed.job, dead[0]);
    let next = server.take_one("q").await;
    assert!(next.job == dead[1] && next.started_at >= begun.after(100));
}

#[tokio::test]
async fn a_letter_whose_key_is_taken_stays_a_letter() {
    let server = on_disk().await;
    let keyed = || JobSpec { dedup_key: "k".to_owned(), ..one_try() };
    let first = server.dead_ones(1, keyed(), "no").await[0];
    let second = server.dead_ones(1, keyed(), "no").await[0];
    let free = server.dead_ones(1, one_try(), "no").await[0];
    // The older one of two letters gets their key.
    let moved =
        server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(9), "r")).await.unwrap();
    assert_eq!(moved.moved, [first, free]);
    let taken = JobRefusal::KeyTaken { key: "k".to_owned(), existing: first };
    assert_eq!(moved.refused, [(second, Some(taken))]);
    assert_eq!(server.letters("q").await, [second]);
    server.jobs().cancel_job(first).await.unwrap();
    assert_eq!(
        server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(9), "s")).await.unwrap().moved,
        [second]
    );
}

#[tokio::test]
async fn letters_are_given_up_for_a_reason() {
    let server = on_disk().await;
    let dead = server.dead_ones(3, one_try(), "no").await;
    let moved = server
        .jobs()
        .dead_letters()
        .discard("q", DeadLetterSelector::Oldest(2), "nobody needs them")
        .await
        .unwrap();
    assert_eq!(moved.moved, dead[..2]);
    let State::Failed { discarded, reason } = server.state(dead[0]).await else { panic!() };
    assert_eq!((discarded.as_deref(), reason.message.as_str()), (Some("nobody needs them"), "no"));
    assert_eq!(server.letters("q").await, dead[2..]);
    let queued = server.jobs().create_job(spec("q")).await.unwrap().job;
    let moved = server
        .jobs()
        .dead_letters()
        .discard("q", DeadLetterSelector::Ids(vec![queued, dead[2]]), "x")
        .await
        .unwrap();
    assert_eq!(moved.moved, dead[2..]);
    assert_eq!(moved.refused, [(queued, Some(JobRefusal::NotDead { status: "queued" }))]);
    assert_eq!(server.jobs().dead_letters().groups("q").await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_that_race_move_each_letter_once() {
    race(["a", "b", "c", "d", "e", "f"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_replay_sent_while_it_runs_moves_each_letter_once() {
    race(["a"; 6]).await;
}

/// Replays of everything under these ids, all at once.
async fn race(ids: [&'static str; 6]) {
    let server = on_disk().await;
    let dead = server.dead_ones(250, one_try(), "no").await;
    let begin = |id| {
        let server = server.clone();
        tokio::spawn(async move {
            server.jobs().dead_letters().replay(replay(DeadLetterSelector::Oldest(250), id)).await
        })
    };
    let racers: Vec<_> = ids.into_iter().map(begin).collect();
    let mut moved = Vec::new();
    for racer in racers {
        moved.extend(racer.await.unwrap().unwrap().moved);
    }
    moved.sort();
    assert_eq!(moved, dead, "each once");
    assert!(server.letters("q").await.is_empty());
    let claimed = server.take("q", 500).await;
    assert_eq!(claimed.len(), 250);
    assert!(claimed.iter().all(|claimed| claimed.attempt == 2));
}
