//! The consistency check of the server.

use axum::Json;
use axum::extract::State;
use windlass_engine::access::Permission;
use windlass_runtime::doctor as runtime;
use windlass_sdk::contract::{DoctorFinding, DoctorReport, DoctorRequest, PageCheck};

use crate::access::Caller;
use crate::app::App;
use crate::extract::JsonBody;
use crate::problem::ApiResult;

/// Examines every open run and every account, and lists inconsistencies. It reads all of them: on a server with many
/// open runs it may take minutes.
#[utoipa::path(post, path = "/api/v1/doctor", operation_id = "examine", tag = "server", request_body = DoctorRequest,
    responses((status = 200, description = "The examined runs and accounts, and the findings", body = DoctorReport)))]
pub(crate) async fn examine(
    State(app): State<App>,
    caller: Caller,
    JsonBody(DoctorRequest { repair }): JsonBody<DoctorRequest>,
) -> ApiResult<Json<DoctorReport>> {
    if repair {
        caller.require(Permission::Admin)?;
    }
    let found = app.runtime.doctor().examine(repair).await?;
    let findings = found.findings.into_iter().map(|finding| DoctorFinding {
        subject: finding.subject,
        node: finding.node.map(|node| node.to_string()),
        what: finding.what,
        repaired: finding.repaired,
        remedy: finding.remedy,
    });
    let runtime::PageCheck { n_checked, n_tables, failures } = found.pages;
    Ok(Json(DoctorReport {
        n_runs: found.n_runs,
        n_accounts: found.n_accounts,
        findings: findings.collect(),
        pages: PageCheck { n_checked, n_tables, failures },
    }))
}
