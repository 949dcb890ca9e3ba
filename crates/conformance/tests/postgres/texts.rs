//! Users' texts are stored unchanged.

use windlass_conformance::block_on_tokio;
use windlass_conformance::entries::{commit, entry, id, open_account, posting};
use windlass_conformance::fixture::publication;
use windlass_conformance::postgres_server::test_database;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::Level;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::account::LedgerQuery;
use windlass_store::audit::{AuditQuery, AuditRow};
use windlass_store::commit::Commit;
use windlass_store::flow::{FlowChoice, FlowRef};
use windlass_store::log::{LogRow, LoggedLine, LogsOf};
use windlass_store::run::Since;
use windlass_store::worker::{WorkerQuery, WorkerRow};

/// Characters that a text of PostgreSQL cannot hold, and their replacements.
const HOSTILE: &str = "a\0b\u{1}0\u{1}\u{1}1';--\u{10ffff}é";

#[test]
fn texts_of_any_characters_come_back() {
    block_on_tokio(async {
        let database = test_database().await;
        let store: &dyn Store = &database.store;
        let mut publication = publication(1, HOSTILE);
        let FlowChoice::Create(draft) = &mut publication.flow else { panic!() };
        draft.labels = [(HOSTILE.to_owned(), HOSTILE.to_owned())].into();
        publication.version.as_mut().unwrap().definition = HOSTILE.to_owned();
        store.publish(&Project::DEFAULT, publication).await.unwrap();
        let flow = store.flow(&Project::DEFAULT, FlowRef::Name(HOSTILE.to_owned())).await.unwrap().unwrap();
        assert_eq!((flow.name.as_str(), flow.labels[HOSTILE].as_str()), (HOSTILE, HOSTILE));
        assert_eq!(store.versions(&Project::DEFAULT, flow.id).await.unwrap()[0].definition, HOSTILE);
        let row = WorkerRow {
            id: HOSTILE.to_owned(),
            name: HOSTILE.to_owned(),
            url: HOSTILE.to_owned(),
            kind: String::new(),
            services: vec![HOSTILE.to_owned()],
            queues: Vec::new(),
            load: 0,
            capacity: 1,
            is_draining: false,
            peer: String::new(),
            replaced: Vec::new(),
            secret: None,
            registered_at: Timestamp(0),
            beat_at: Timestamp(0),
        };
        store.save_worker(&Project::DEFAULT, row.clone()).await.unwrap();
        assert_eq!(store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap(), [row]);
        let mut commits = entry(1, 1, 0, 100);
        commits.audit.push(AuditRow {
            at: Timestamp(1),
            who: HOSTILE.to_owned(),
            what: "run.create".to_owned(),
            subject: HOSTILE.to_owned(),
            detail: serde_json::json!({ HOSTILE: [HOSTILE, 1e300, 0.1, 12_345_678_901_234_567_890_u64] }),
        });
        let written = commits.clone();
        commit(store, commits).await.unwrap();
        let audit = store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap();
        assert_eq!(audit.into_iter().map(|line| line.row).collect::<Vec<_>>(), written.audit);
        let (run, at) = (id("run", 1), Timestamp(2));
        let said =
            LoggedLine { level: Level::Info, message: HOSTILE.to_owned(), data: serde_json::Value::Null };
        let (text, node) = (HOSTILE.to_owned(), "a".into());
        let log = LogRow { run, entry: Seq(1), fence: Fence(u64::MAX), node, at, text, lines: vec![said] };
        let mut writes = Commit::new(&Project::DEFAULT, id("cmd", 77), at);
        writes.logs.push(log.clone());
        commit(store, writes).await.unwrap();
        assert_eq!(
            store.logs(&Project::DEFAULT, run, LogsOf::Attempt(Fence(u64::MAX))).await.unwrap(),
            [log]
        );
        let long = Movement::charge(format!("charge:{}", HOSTILE.repeat(1_000)), Amount(1));
        open_account(store, HOSTILE, 10).await;
        let charge = Commit {
            postings: vec![posting(HOSTILE, long.clone())],
            ..Commit::new(&Project::DEFAULT, id("cmd", 99), at)
        };
        assert_eq!(commit(store, charge).await.unwrap().balances[HOSTILE], Amount(9));
        let query = LedgerQuery {
            account: HOSTILE.to_owned(),
            key: Some(long.key.clone()),
            ..LedgerQuery::default()
        };
        assert_eq!(store.ledger(&Project::DEFAULT, query).await.unwrap()[0].posting.movement, long);
        let journal = store.journal(&Project::DEFAULT, run, Since::Entry(Seq::ZERO), 10).await.unwrap();
        assert_eq!(journal.entries, [(Seq(1), written.run.unwrap().entry)]);
    });
}
