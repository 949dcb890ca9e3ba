//! Lists, filters and pages.

use std::collections::BTreeSet;

use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::event::{Parent, RunFault};
use windlass_engine::id::RunId;
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::flow::FlowChoice;
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::{Cursor, Order, Part};
use windlass_store::run::{Owner, Request, RunCondition, RunQuery, RunStatus, RunTest, RunTrigger};
use windlass_store::{Refusal, Store};

use crate::fixture::{
    FLOW, StoreFixture, VERSION, at, flow_draft, flow_id, job_id, run_id, schedule_id, version_draft,
    version_id,
};

async fn found(store: &dyn Store, query: RunQuery) -> Vec<RunId> {
    store.runs(&Project::DEFAULT, query).await.unwrap().items.into_iter().map(|row| row.id).collect()
}

/// A plain run, and a run with a value in every field that a query can name.
async fn two_runs(fixture: &StoreFixture<'_>) {
    fixture.publish(FlowChoice::Create(flow_draft(2, "second")), Some(version_draft(2))).await.unwrap();
    fixture.create(1, RunStatus::Running, at(100), |_, _| {}).await.unwrap();
    let special = |origin: &mut windlass_store::run::Origin,
                   projection: &mut windlass_store::run::RunProjection| {
        origin.flow = flow_id(2);
        origin.version = version_id(2);
        origin.account = Some("payer".to_owned());
        origin.schedule = Some(schedule_id(1));
        origin.request = Some(Request { id: "Order-77".to_owned(), digest: String::new() });
        origin.labels.insert("team".to_owned(), "Video".to_owned());
        origin.parent = Some(Parent {
            run: run_id(1),
            node: NodePath::from("call"),
            fence: Fence(1),
            depth: 1,
            root: None,
        });
        let fault = Fault::new(FaultKind::Error, "Disk on fire");
        projection.error = Some(RunFault { node: NodePath::from("a"), fault });
    };
    fixture.create(2, RunStatus::Failed, at(200), special).await.unwrap();
}

pub async fn runs_are_found_by_every_field(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    two_runs(&fixture).await;
    let any = RunQuery::default;
    let label = |value: Option<&str>| Some(("team".to_owned(), value.map(str::to_owned)));
    let queries = [
        (any(), vec![2, 1]),
        (RunQuery { statuses: vec![RunStatus::Failed], ..any() }, vec![2]),
        (RunQuery { statuses: vec![RunStatus::Failed, RunStatus::Running], ..any() }, vec![2, 1]),
        (RunQuery { statuses: vec![RunStatus::Waiting], ..any() }, vec![]),
        (RunQuery { flow: Some(flow_id(FLOW)), ..any() }, vec![1]),
        (RunQuery { version: Some(version_id(VERSION)), ..any() }, vec![1]),
        (RunQuery { account: Some("payer".to_owned()), ..any() }, vec![2]),
        (RunQuery { account: Some("unknown".to_owned()), ..any() }, vec![]),
        (RunQuery { parent: Some(run_id(1)), ..any() }, vec![2]),
        (RunQuery { schedule: Some(schedule_id(1)), ..any() }, vec![2]),
        (RunQuery { label: label(None), ..any() }, vec![2]),
        (RunQuery { label: label(Some("Video")), ..any() }, vec![2]),
        (RunQuery { label: label(Some("video")), ..any() }, vec![]),
        (RunQuery { since: Some(at(200)), ..any() }, vec![2]),
        (RunQuery { until: Some(at(200)), ..any() }, vec![1]),
        (RunQuery { since: Some(at(100)), until: Some(at(201)), ..any() }, vec![2, 1]),
        (RunQuery { statuses: vec![RunStatus::Failed], flow: Some(flow_id(FLOW)), ..any() }, vec![]),
    ];
    for (query, expected) in queries {
        let expected: Vec<RunId> = expected.into_iter().map(run_id).collect();
        assert_eq!(found(store, query.clone()).await, expected, "{query:?}");
    }
}

pub async fn open_runs_are_found_by_owner_and_progress(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let owner = Owner { server: format!("srv_{:032x}", 1).parse().unwrap(), epoch: Epoch(1) };
    let (running, waiting) = (RunStatus::Running, RunStatus::Waiting);
    fixture.create(1, running, at(1), |_, projection| projection.owner = Some(owner)).await.unwrap();
    fixture.create(2, running, at(2), |_, projection| projection.owner = None).await.unwrap();
    fixture
        .create(3, waiting, at(3), |_, projection| (projection.owner, projection.step_count) = (None, 0))
        .await
        .unwrap();
    fixture
        .create(4, waiting, at(4), |_, projection| (projection.owner, projection.step_count) = (None, 9))
        .await
        .unwrap();
    let any = RunQuery::default;
    for (query, expected) in [
        (RunQuery { is_owned: Some(true), ..any() }, vec![4, 3, 1]),
        (RunQuery { is_owned: Some(false), ..any() }, vec![4, 3, 2]),
        (RunQuery { has_entered: Some(true), ..any() }, vec![4, 2, 1]),
        (RunQuery { has_entered: Some(false), ..any() }, vec![3, 2, 1]),
        (RunQuery { statuses: vec![running], is_owned: Some(false), ..any() }, vec![2]),
    ] {
        let expected: Vec<RunId> = expected.into_iter().map(run_id).collect();
        let part = Part { count: true, ..Part::default() };
        let page = store.runs(&Project::DEFAULT, RunQuery { part, ..query.clone() }).await.unwrap();
        assert_eq!(page.total, Some(expected.len() as u64), "{query:?}");
        assert_eq!(page.items.into_iter().map(|row| row.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

pub async fn text_finds_ids_requests_labels_and_errors(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    two_runs(&fixture).await;
    let id = run_id(1).to_string();
    for (text, expected) in [
        (id.as_str(), vec![1]),
        ("order-7", vec![2]),
        ("VIDEO", vec![2]),
        ("on fire", vec![2]),
        ("%", vec![]),
        ("_ rder", vec![]),
        ("'; drop table runs; --", vec![]),
        ("", vec![2, 1]),
    ] {
        let query = RunQuery { text: Some(text.to_owned()), ..RunQuery::default() };
        let expected: Vec<RunId> = expected.into_iter().map(run_id).collect();
        assert_eq!(found(store, query).await, expected, "{text}");
    }
}

pub async fn tests_narrow_a_list_by_every_condition(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    two_runs(&fixture).await;
    let label =
        |values: Option<&str>| RunCondition::Label("team".to_owned(), values.map(|v| vec![v.to_owned()]));
    let conditions = [
        (RunCondition::Statuses(vec![RunStatus::Failed]), vec![2]),
        (RunCondition::Statuses(vec![RunStatus::Failed, RunStatus::Running]), vec![2, 1]),
        (RunCondition::Flows(vec![(flow_id(2), None)]), vec![2]),
        (RunCondition::Flows(vec![(flow_id(2), None), (flow_id(FLOW), None)]), vec![2, 1]),
        (RunCondition::Flows(vec![(flow_id(2), Some(version_id(2)))]), vec![2]),
        (RunCondition::Flows(vec![(flow_id(2), Some(version_id(VERSION)))]), vec![]),
        (RunCondition::Versions(vec![version_id(VERSION)]), vec![1]),
        (RunCondition::Accounts(vec!["payer".to_owned()]), vec![2]),
        (RunCondition::Accounts(vec!["payer".to_owned(), "other".to_owned()]), vec![2]),
        (RunCondition::Runs(vec![run_id(1)]), vec![1]),
        (RunCondition::ErrorKinds(vec![FaultKind::Error]), vec![2]),
        (RunCondition::ErrorKinds(vec![FaultKind::Timeout]), vec![]),
        (RunCondition::ErrorText("on FIRE".to_owned()), vec![2]),
        (label(None), vec![2]),
        (label(Some("Video")), vec![2]),
        (label(Some("video")), vec![]),
        (RunCondition::Parents(vec![run_id(1)]), vec![2]),
        (RunCondition::Schedules(vec![schedule_id(1)]), vec![2]),
        (RunCondition::Requests(vec!["Order-77".to_owned()]), vec![2]),
        (RunCondition::Ids(vec![(run_id(2), run_id(9))]), vec![2]),
        (RunCondition::Ids(vec![(run_id(1), run_id(1)), (run_id(2), run_id(2))]), vec![2, 1]),
        (RunCondition::Triggers(vec![RunTrigger::Parent]), vec![2]),
        (RunCondition::Triggers(vec![RunTrigger::Api]), vec![1]),
        (RunCondition::Since(at(200)), vec![2]),
        (RunCondition::Until(at(200)), vec![1]),
        (RunCondition::LongerThan(50, at(160)), vec![1]),
        (RunCondition::ShorterThan(50, at(160)), vec![2]),
        (RunCondition::Text("order-7".to_owned()), vec![2]),
    ];
    for (condition, expected) in conditions {
        let rest: Vec<u64> = [2, 1].into_iter().filter(|n| !expected.contains(n)).collect();
        for (is_negated, expected) in [(false, expected), (true, rest)] {
            let mut query = RunQuery::default();
            query.narrow(RunTest { is_negated, condition: condition.clone() });
            let expected: Vec<RunId> = expected.into_iter().map(run_id).collect();
            assert_eq!(found(store, query.clone()).await, expected, "{query:?}");
            // A second term on the same field holds beside the first.
            query.narrow(RunTest { is_negated: !is_negated, condition: condition.clone() });
            assert_eq!(found(store, query).await, [], "{condition:?}");
        }
    }
}

pub async fn runs_are_counted_up_to_a_limit_where_an_index_answers(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    two_runs(&fixture).await;
    for n in 3..=5 {
        fixture.create(n, RunStatus::Running, at(300), |_, _| {}).await.unwrap();
    }
    let any = RunQuery::default;
    let statuses = |statuses: &[RunStatus]| RunQuery { statuses: statuses.to_vec(), ..any() };
    for (query, limit, expected) in [
        (any(), 9, Some(5)),
        (any(), 3, Some(3)),
        (statuses(&[RunStatus::Running]), 9, Some(4)),
        (statuses(&[RunStatus::Running, RunStatus::Failed]), 9, Some(5)),
        (statuses(&[RunStatus::Running, RunStatus::Failed]), 2, Some(2)),
        (RunQuery { account: Some("payer".to_owned()), ..any() }, 9, Some(1)),
        (RunQuery { ids: Some((run_id(2), run_id(4))), ..any() }, 9, Some(3)),
        (RunQuery { since: Some(at(300)), ..statuses(&[RunStatus::Running]) }, 9, Some(3)),
        (RunQuery { text: Some("x".to_owned()), ..any() }, 9, None),
        (RunQuery { account: Some("payer".to_owned()), ..statuses(&[RunStatus::Failed]) }, 9, None),
    ] {
        let counted = store.count_matching(&Project::DEFAULT, query.clone(), limit).await.unwrap();
        assert_eq!(counted, expected, "{query:?}");
    }
}

/// Pages through all runs, `limit` at a time.
async fn all_pages(store: &dyn Store, order: Order, limit: usize) -> Vec<RunId> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let part = Part { order, cursor, limit, ..Part::default() };
        let page = store.runs(&Project::DEFAULT, RunQuery { part, ..RunQuery::default() }).await.unwrap();
        assert!(page.items.len() <= limit);
        assert!(page.next.is_none() || !page.items.is_empty(), "a cursor leads on only from something");
        all.extend(page.items.into_iter().map(|row| row.id));
        match page.next {
            Some(next) => cursor = Some(Cursor::from_text(next.as_str())),
            None => return all,
        }
    }
}

pub async fn cursors_page_through_everything_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=20 {
        let now = at(i64::try_from(n * 7 % 11).unwrap());
        fixture.create(n, RunStatus::Running, now, |_, _| {}).await.unwrap();
    }
    for order in [Order::Newest, Order::Oldest, Order::LatestChange] {
        let whole = all_pages(store, order, 100).await;
        assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), 20, "{order:?}");
        for limit in [1, 3, 10, 19, 20] {
            assert_eq!(all_pages(store, order, limit).await, whole, "{order:?} by {limit}");
        }
    }
}

pub async fn runs_of_the_same_moment_are_paged_through_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=9 {
        fixture.create(n, RunStatus::Running, at(5), |_, _| {}).await.unwrap();
    }
    let expected: Vec<RunId> = (1..=9).rev().map(run_id).collect();
    assert_eq!(all_pages(store, Order::Newest, 2).await, expected);
    // A row created meanwhile is newer, and does not appear on later pages of older rows.
    let part = Part { limit: 5, ..Part::default() };
    let first = store.runs(&Project::DEFAULT, RunQuery { part, ..RunQuery::default() }).await.unwrap();
    fixture.create(10, RunStatus::Running, at(6), |_, _| {}).await.unwrap();
    let part = Part { cursor: first.next, ..Part::default() };
    assert_eq!(found(store, RunQuery { part, ..RunQuery::default() }).await, expected[5..]);
}

pub async fn lists_are_ordered_as_asked(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, now) in [(1, 30), (2, 10), (3, 20)] {
        fixture.create(n, RunStatus::Running, at(now), |_, _| {}).await.unwrap();
    }
    fixture.commit(fixture.entry(2, 1, RunStatus::Running, at(99))).await.unwrap();
    let expected = |ids: [u64; 3]| ids.map(run_id).to_vec();
    assert_eq!(all_pages(store, Order::Newest, 9).await, expected([1, 3, 2]));
    assert_eq!(all_pages(store, Order::Oldest, 9).await, expected([2, 3, 1]));
    assert_eq!(all_pages(store, Order::LatestChange, 9).await, expected([2, 1, 3]));
}

pub async fn pages_can_be_numbered_and_counted(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=7 {
        fixture.create(n, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    }
    let part = Part { skip: 4, limit: 2, count: true, ..Part::default() };
    let page = store.runs(&Project::DEFAULT, RunQuery { part, ..RunQuery::default() }).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.id).collect::<Vec<_>>(), [run_id(3), run_id(2)]);
    assert_eq!((page.total, page.next.is_some()), (Some(7), true));
    let part = Part { skip: 9, count: true, ..Part::default() };
    let page = store.runs(&Project::DEFAULT, RunQuery { part, ..RunQuery::default() }).await.unwrap();
    assert_eq!((page.items.len(), page.total, page.next), (0, Some(7), None));
    assert_eq!(store.runs(&Project::DEFAULT, RunQuery::default()).await.unwrap().total, None);
}

pub async fn a_cursor_of_another_list_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=3 {
        fixture.create(n, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
        fixture.create_job(n, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    }
    let part = Part { limit: 1, ..Part::default() };
    let jobs = store.jobs(&Project::DEFAULT, JobQuery { part, ..JobQuery::default() }).await.unwrap();
    for cursor in [jobs.next.unwrap(), Cursor::from_text(""), Cursor::from_text("n1.run_\u{0}")] {
        let part = Part { cursor: Some(cursor), ..Part::default() };
        let refused =
            store.runs(&Project::DEFAULT, RunQuery { part, ..RunQuery::default() }).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::BadCursor));
    }
}

pub async fn jobs_are_found_by_every_field(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("resize", "images"), at(100)).await.unwrap();
    let dying = JobSpec { max_retries: 1, ..JobSpec::new("mail", "default") };
    fixture.create_job(2, dying, at(200)).await.unwrap();
    fixture.submit(2, JobInput::Claim { worker: "w".to_owned(), lease_ms: 10 }, at(200)).await.unwrap();
    fixture.submit(2, JobInput::LeaseExpired { fence: Fence(1) }, at(300)).await.unwrap();
    let mut of_run =
        fixture.job(3, JobSpec { run: Some(run_id(1)), ..JobSpec::new("mail", "mail") }, at(300));
    of_run.jobs[0].origin.schedule = Some(schedule_id(1));
    fixture.commit(of_run).await.unwrap();
    let any = JobQuery::default;
    let queries = [
        (any(), vec![3, 2, 1]),
        (JobQuery { statuses: vec![JobStatus::Failed], ..any() }, vec![2]),
        (JobQuery { statuses: vec![JobStatus::Queued], ..any() }, vec![3, 1]),
        (JobQuery { queue: Some("images".to_owned()), ..any() }, vec![1]),
        (JobQuery { name: Some("mail".to_owned()), ..any() }, vec![3, 2]),
        (JobQuery { run: Some(run_id(1)), ..any() }, vec![3]),
        (JobQuery { schedule: Some(schedule_id(1)), ..any() }, vec![3]),
        (JobQuery { is_dead_letter: Some(true), ..any() }, vec![2]),
        (JobQuery { is_dead_letter: Some(false), ..any() }, vec![3, 1]),
        (JobQuery { since: Some(at(200)), until: Some(at(300)), ..any() }, vec![2]),
    ];
    for (query, expected) in queries {
        let rows = store.jobs(&Project::DEFAULT, query.clone()).await.unwrap().items;
        let expected: Vec<_> = expected.into_iter().map(job_id).collect();
        assert_eq!(rows.iter().map(|row| row.id()).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

pub async fn jobs_page_through_everything_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=10 {
        let now = at(i64::try_from(n / 3).unwrap());
        fixture.create_job(n, JobSpec::new("demo", "default"), now).await.unwrap();
    }
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let part = Part { order: Order::Oldest, cursor, limit: 3, ..Part::default() };
        let page = store.jobs(&Project::DEFAULT, JobQuery { part, ..JobQuery::default() }).await.unwrap();
        all.extend(page.items.iter().map(|row| row.id()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(all, (1..=10).map(job_id).collect::<Vec<_>>());
}

pub async fn open_and_ended_runs_are_ordered_by_their_latest_change(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, status) in [(1, RunStatus::Running), (2, RunStatus::Failed), (3, RunStatus::Completed)] {
        fixture.create(n, status, at(i64::try_from(n).unwrap()), |_, _| {}).await.unwrap();
    }
    fixture.create(4, RunStatus::Waiting, at(4), |_, _| {}).await.unwrap();
    fixture.commit(fixture.entry(1, 1, RunStatus::Running, at(9))).await.unwrap();
    // It changed at the same moment as an ended run: the larger id comes first.
    fixture.create(5, RunStatus::Paused, at(3), |_, _| {}).await.unwrap();
    for (statuses, expected) in [
        (vec![], vec![1, 4, 5, 3, 2]),
        (vec![RunStatus::Running, RunStatus::Waiting], vec![1, 4]),
        (vec![RunStatus::Failed], vec![2]),
        (vec![RunStatus::Failed, RunStatus::Paused], vec![5, 2]),
    ] {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let part = Part { order: Order::LatestChange, cursor, limit: 2, ..Part::default() };
            let query = RunQuery { statuses: statuses.clone(), part, ..RunQuery::default() };
            let page = store.runs(&Project::DEFAULT, query).await.unwrap();
            ids.extend(page.items.into_iter().map(|row| row.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, expected.into_iter().map(run_id).collect::<Vec<_>>(), "{statuses:?}");
        let part = Part { order: Order::LatestChange, skip: 1, limit: 1, ..Part::default() };
        let query = RunQuery { statuses, part, ..RunQuery::default() };
        let second =
            store.runs(&Project::DEFAULT, query).await.unwrap().items.into_iter().map(|row| row.id).next();
        assert_eq!(second, ids.get(1).copied());
    }
}
