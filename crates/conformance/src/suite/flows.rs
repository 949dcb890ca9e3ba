//! Flows and versions.

use std::collections::BTreeMap;

use windlass_engine::project::Project;
use windlass_store::flow::{
    FlowChoice, FlowDraft, FlowQuery, FlowRef, VersionDraft, VersionRef, VersionStatus,
};
use windlass_store::{Refusal, Store};

use crate::fixture::{FLOW, StoreFixture, VERSION, flow_draft, flow_id, version_draft, version_id};

pub async fn a_flow_and_its_first_version_are_published_at_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let flow = FlowChoice::Create(flow_draft(2, "second"));
    let published = fixture.publish(flow, Some(version_draft(2))).await.unwrap();
    assert_eq!((published.flow, published.version), (flow_id(2), Some((version_id(2), 1))));
    assert!(published.created);
    let row = store.flow(&Project::DEFAULT, FlowRef::Name("second".to_owned())).await.unwrap().unwrap();
    assert_eq!((row.id, row.latest, row.description.as_str()), (flow_id(2), 1, "What second does"));
    let version =
        store.version(&Project::DEFAULT, VersionRef::Number { flow: flow_id(2), number: 1 }).await.unwrap();
    assert_eq!(version.unwrap().id, version_id(2));
}

pub async fn a_taken_name_is_refused_and_nothing_is_written(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let flow = FlowChoice::Create(flow_draft(2, "first"));
    let refused = fixture.publish(flow, Some(version_draft(2))).await.unwrap_err();
    let taken = Refusal::NameTaken { name: "first".to_owned(), existing: flow_id(FLOW) };
    assert_eq!(refused.refusal(), Some(&taken));
    assert_eq!(store.flow(&Project::DEFAULT, FlowRef::Id(flow_id(2))).await.unwrap(), None);
    assert_eq!(store.version(&Project::DEFAULT, VersionRef::Id(version_id(2))).await.unwrap(), None);
}

pub async fn a_taken_name_makes_another_flow_where_that_is_allowed(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let draft = FlowDraft { allow_same_name: true, ..flow_draft(2, "first") };
    assert!(fixture.publish(FlowChoice::Create(draft), None).await.unwrap().created);
    assert!(store.flow(&Project::DEFAULT, FlowRef::Id(flow_id(2))).await.unwrap().is_some());
    // The name still means the first flow.
    let named = store.flow(&Project::DEFAULT, FlowRef::Name("first".to_owned())).await.unwrap().unwrap();
    assert_eq!(named.id, flow_id(FLOW));
}

pub async fn publishing_again_under_the_same_ids_writes_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let again = VersionDraft { note: "again".to_owned(), ..version_draft(VERSION) };
    let flow = FlowChoice::Create(flow_draft(FLOW, "first"));
    let published = fixture.publish(flow, Some(again)).await.unwrap();
    assert_eq!(published.version, Some((version_id(VERSION), 1)));
    assert!(!published.created);
    let versions = store.versions(&Project::DEFAULT, flow_id(FLOW)).await.unwrap();
    assert_eq!((versions.len(), versions[0].note.as_str()), (1, ""));
}

pub async fn versions_are_numbered_in_order_and_listed_newest_first(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let flow = || FlowChoice::Existing(flow_id(FLOW));
    fixture.publish(flow(), Some(version_draft(2))).await.unwrap();
    let seventh = VersionDraft { number: Some(7), ..version_draft(3) };
    fixture.publish(flow(), Some(seventh)).await.unwrap();
    fixture.publish(flow(), Some(version_draft(4))).await.unwrap();
    let versions = store.versions(&Project::DEFAULT, flow_id(FLOW)).await.unwrap();
    assert_eq!(versions.iter().map(|row| row.number).collect::<Vec<_>>(), [8, 7, 2, 1]);
    assert_eq!(store.flow(&Project::DEFAULT, FlowRef::Id(flow_id(FLOW))).await.unwrap().unwrap().latest, 8);
}

pub async fn a_taken_number_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let first = VersionDraft { number: Some(1), ..version_draft(2) };
    let refused = fixture.publish(FlowChoice::Existing(flow_id(FLOW)), Some(first)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::NumberTaken { flow: flow_id(FLOW), number: 1 }));
}

pub async fn the_latest_version_is_the_latest_published_one(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let flow = || FlowChoice::Existing(flow_id(FLOW));
    fixture.publish(flow(), Some(version_draft(2))).await.unwrap();
    let draft = VersionDraft { status: VersionStatus::Draft, ..version_draft(3) };
    fixture.publish(flow(), Some(draft)).await.unwrap();
    let latest =
        store.version(&Project::DEFAULT, VersionRef::Latest { flow: flow_id(FLOW) }).await.unwrap().unwrap();
    assert_eq!((latest.id, latest.number), (version_id(2), 2));
    assert_eq!(
        store.version(&Project::DEFAULT, VersionRef::Latest { flow: flow_id(9) }).await.unwrap(),
        None
    );
}

pub async fn a_version_of_an_unknown_flow_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let refused =
        fixture.publish(FlowChoice::Existing(flow_id(9)), Some(version_draft(2))).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownFlow(flow_id(9))));
}

pub async fn a_definition_comes_back_as_it_was_written(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let definition = "# a comment\nstart: a\nnodes:\n  a: {service: \"ß\u{1f980}'; --\"}\n".to_owned();
    let draft = VersionDraft { definition: definition.clone(), lenient: true, ..version_draft(2) };
    fixture.publish(FlowChoice::Existing(flow_id(FLOW)), Some(draft)).await.unwrap();
    let row = store.version(&Project::DEFAULT, VersionRef::Id(version_id(2))).await.unwrap().unwrap();
    assert_eq!((row.definition, row.lenient), (definition, true));
}

pub async fn flows_are_found_by_text_label_and_kind(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let labels = BTreeMap::from([("team".to_owned(), "video".to_owned())]);
    let draft = FlowDraft { labels, is_template: true, ..flow_draft(2, "Captions") };
    fixture.publish(FlowChoice::Create(draft), None).await.unwrap();
    let label = |value: Option<&str>| Some(("team".to_owned(), value.map(str::to_owned)));
    let queries = [
        (FlowQuery { text: Some("caption".to_owned()), ..FlowQuery::default() }, vec![2]),
        (FlowQuery { text: Some("WHAT".to_owned()), ..FlowQuery::default() }, vec![2, FLOW]),
        (FlowQuery { label: label(None), ..FlowQuery::default() }, vec![2]),
        (FlowQuery { label: label(Some("video")), ..FlowQuery::default() }, vec![2]),
        (FlowQuery { label: label(Some("sound")), ..FlowQuery::default() }, vec![]),
        (FlowQuery { is_template: Some(false), ..FlowQuery::default() }, vec![FLOW]),
    ];
    for (query, expected) in queries {
        let found = store.flows(&Project::DEFAULT, query.clone()).await.unwrap().items;
        let expected: Vec<_> = expected.into_iter().map(flow_id).collect();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
}
