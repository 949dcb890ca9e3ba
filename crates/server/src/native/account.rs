//! Accounts: opening them, deposits, and the ledger.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::money::Amount;
use windlass_sdk::contract::{
    AccountInfo, DepositRequest, DepositResponse, LedgerEntry, LedgerListQuery, List, NewAccount, PageQuery,
};
use windlass_store::account::LedgerQuery as StoredQuery;

use crate::app::{App, run_id};
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Opens an account. One that is there and has the name, or whose name is not given, is answered as it is.
#[utoipa::path(post, path = "/api/v1/accounts", operation_id = "open_account", tag = "money", request_body = NewAccount,
    responses((status = 201, description = "The account was opened", body = AccountInfo),
        (status = 200, description = "The account was there", body = AccountInfo)))]
pub(crate) async fn open(
    State(app): State<App>,
    JsonBody(new): JsonBody<NewAccount>,
) -> ApiResult<(StatusCode, Json<AccountInfo>)> {
    check::name("id", &new.id)?;
    if new.id.contains('/') || new.id.trim() != new.id {
        let reason = "it has a slash, or spaces around it: it is a part of paths, use `-` or `_`";
        return Err(ApiError::field(Code::InvalidBody, "id", reason));
    }
    check::name_if_given("name", new.name.as_deref())?;
    let opened = app.runtime.money().open_account(&new.id, new.name.as_deref()).await?;
    let status = if opened.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shape::account(opened.account))))
}

/// Lists accounts, by id.
#[utoipa::path(get, path = "/api/v1/accounts", operation_id = "list_accounts", tag = "money", params(PageQuery),
    responses((status = 200, description = "A page of accounts", body = List<AccountInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<AccountInfo>>> {
    let limit = shape::limit(asked.limit)?;
    let rows = app.store().accounts_after(app.project(), asked.cursor, limit).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|last| last.id.clone());
    Ok(Json(List { items: rows.into_iter().map(shape::account).collect(), next }))
}

/// Shows an account.
#[utoipa::path(get, path = "/api/v1/accounts/{id}", operation_id = "show_account", tag = "money",
    params(("id" = String, Path, description = "The id of the account")),
    responses((status = 200, description = "The account", body = AccountInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<AccountInfo>> {
    Ok(Json(shape::account(app.runtime.money().account(&id).await?)))
}

/// Puts money into an account, once per key. Runs that wait for it go on.
#[utoipa::path(post, path = "/api/v1/accounts/{id}/deposit", operation_id = "deposit", tag = "money",
    request_body = DepositRequest, params(("id" = String, Path, description = "The id of the account")),
    responses((status = 201, description = "The money is in", body = DepositResponse),
        (status = 200, description = "It was put in before, by a request with the same key", body = DepositResponse)))]
pub(crate) async fn deposit(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<DepositRequest>,
) -> ApiResult<(StatusCode, Json<DepositResponse>)> {
    check::within("amount", body.amount, 1, i64::MAX)?;
    check::name("key", &body.key)?;
    let deposited = app.runtime.money().deposit(&id, Amount(body.amount), &body.key).await?;
    let status = if deposited.created { StatusCode::CREATED } else { StatusCode::OK };
    let answer = DepositResponse {
        account: shape::account(deposited.account),
        entry: shape::ledger_entry(deposited.entry),
        created: deposited.created,
    };
    Ok((status, Json(answer)))
}

/// Lists the ledger of an account, newest entry first.
#[utoipa::path(get, path = "/api/v1/accounts/{id}/ledger", operation_id = "show_ledger", tag = "money",
    params(("id" = String, Path, description = "The id of the account"), LedgerListQuery),
    responses((status = 200, description = "A page of the ledger", body = List<LedgerEntry>)))]
pub(crate) async fn ledger(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<LedgerListQuery>,
) -> ApiResult<Json<List<LedgerEntry>>> {
    let limit = shape::limit(asked.limit)?;
    let query = StoredQuery {
        run: asked.run.as_deref().map(run_asked).transpose()?,
        order: shape::order(asked.order),
        after: Seq(shape::counted(asked.cursor.as_deref())?),
        limit,
        account: app.runtime.money().account(&id).await?.id,
        key: None,
    };
    let rows = app.store().ledger(app.project(), query).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|last| last.seq.to_string());
    Ok(Json(List { items: rows.into_iter().map(shape::ledger_entry).collect(), next }))
}

fn run_asked(text: &str) -> ApiResult<RunId> {
    run_id(text).map_err(|_| ApiError::field(Code::BadQuery, "?run", "it is no id of a run: give `run_…`"))
}
