//! Whether everything is as it must be.

use axum::Json;
use axum::extract::State;
use windlass_sdk::types::{Examination, Examine, Finding};

use crate::app::App;
use crate::extract::Body;
use crate::problem::Answer;

/// Looks at every open run and every account, and says what is not as it must be. It reads all of them: on a server
/// with many open runs it takes its time.
#[utoipa::path(post, path = "/api/v1/doctor", operation_id = "examine", tag = "server", request_body = Examine,
    responses((status = 200, description = "What was looked at and what was found", body = Examination)))]
pub(crate) async fn examine(
    State(app): State<App>,
    Body(Examine { repair }): Body<Examine>,
) -> Answer<Json<Examination>> {
    let found = app.runtime.examine(repair).await?;
    let findings = found.findings.into_iter().map(|finding| Finding {
        subject: finding.subject,
        node: finding.node.map(|node| node.to_string()),
        what: finding.what,
        repaired: finding.repaired,
    });
    Ok(Json(Examination { n_runs: found.n_runs, n_accounts: found.n_accounts, findings: findings.collect() }))
}
