//! Search by the beginning of an id, or by a part of a name: for people who have an id from a log.

use axum::Json;
use axum::extract::State;
use windlass_engine::id::JobId;
use windlass_sdk::contract::{SearchHit, SearchHits, SearchQuery};
use windlass_store::flow::FlowQuery;
use windlass_store::job::JobStatus;
use windlass_store::page::{NameRange, Part};

use crate::app::App;
use crate::extract::QueryParams;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Hits of each kind unless the query says otherwise, and at most.
const HITS: usize = 5;
const HITS_MAX: usize = 50;
/// Characters without which half of all ids would be found.
const CHARS_MIN: usize = 2;
/// Queues that are looked through.
const NAMES_MAX: usize = 1_000;

/// Finds runs by the beginning of their id, jobs by their id, flows and queues by a part of their name.
#[utoipa::path(get, path = "/api/v1/search", operation_id = "search", tag = "server", params(SearchQuery),
    responses((status = 200, description = "What was found", body = SearchHits)))]
pub(crate) async fn search(
    State(app): State<App>,
    QueryParams(asked): QueryParams<SearchQuery>,
) -> ApiResult<Json<SearchHits>> {
    let text = asked.q.trim();
    if text.chars().count() < CHARS_MIN {
        return Err(ApiError::field(Code::BadQuery, "?q", format!("give at least {CHARS_MIN} characters")));
    }
    let limit = match asked.limit {
        None => HITS,
        Some(limit @ 1..=HITS_MAX) => limit,
        Some(_) => return Err(ApiError::field(Code::BadQuery, "?limit", format!("give 1 to {HITS_MAX}"))),
    };
    let mut items = Vec::new();
    for row in app.runtime.runs().finder().with_prefix(text, limit).await? {
        let label = app.label(row.origin.flow, row.origin.version).await?;
        items.push(SearchHit {
            kind: "run".to_owned(),
            id: row.id.to_string(),
            title: format!("{} v{}", label.flow, label.number),
            status: Some(shape::status(row.projection.status).word().to_owned()),
        });
    }
    let flows = FlowQuery {
        text: Some(text.to_owned()),
        part: Part { limit, ..Part::default() },
        ..FlowQuery::default()
    };
    for flow in app.store().flows(app.project(), flows).await?.items {
        let (id, title) = (flow.name.clone(), flow.name);
        items.push(SearchHit { kind: "flow".to_owned(), id, title, status: None });
    }
    let names = NameRange::After { name: None, limit: NAMES_MAX };
    let queues = app.store().queues(app.project(), names, app.runtime.clock().now()).await?;
    for queue in queues.into_iter().filter(|queue| queue.name.contains(text)).take(limit) {
        let (id, title) = (queue.name.clone(), queue.name);
        items.push(SearchHit { kind: "queue".to_owned(), id, title, status: None });
    }
    if let Ok(id) = text.parse::<JobId>()
        && let Some(row) = app.store().job(app.project(), id).await?
    {
        let status = Some(JobStatus::of(&row.job).word().to_owned());
        items.push(SearchHit {
            kind: "job".to_owned(),
            id: id.to_string(),
            title: row.job.spec.name.clone(),
            status,
        });
    }
    Ok(Json(SearchHits { items }))
}
