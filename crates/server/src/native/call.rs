//! Reports about calls that went on elsewhere.

use std::ops::ControlFlow;

use axum::Json;
use axum::extract::State;
use windlass_engine::event::Event;
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome, Refusal};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::run::state::Stage;
use windlass_runtime::SubmitError;
use windlass_runtime::log::Log;
use windlass_runtime::run::RunView;
use windlass_sdk::types::{CallReport, Reported, Verdict};

use super::job::Told;
use crate::app::App;
use crate::check;
use crate::extract::{At, Body};
use crate::problem::{Answer, ApiError, Code};
use crate::shape::{self, Found};

/// Says how a call that was suspended, or that a push worker took on, ended. The very same report sent again is `ok`
/// again. `lost`: somebody else has it, or it is over.
#[utoipa::path(post, path = "/api/v1/calls/{id}/report", operation_id = "report_call", tag = "jobs", request_body = CallReport,
    params(("id" = String, Path, description = "The id of the call, as its worker was told: `<run>.<fence>`")),
    responses((status = 200, description = "What became of the report", body = Reported)))]
pub(crate) async fn report(
    State(app): State<App>,
    At(id): At<String>,
    Body(report): Body<CallReport>,
) -> Answer<Json<Reported>> {
    let CallReport { outcome, result, error, retryable, memo, recheck_ms, temporary, worker_id, logs } =
        report;
    check::name_if_given("worker_id", worker_id.as_deref())?;
    let outcome = Told { outcome, result, error, retryable, temporary, memo, recheck_ms }.ended("")?;
    let (run, fence) = read(&id)?;
    // Only a run that is not there makes the call unknown: trouble is told as trouble, and the report is sent again.
    let view = app.runtime.view(run).await?.ok_or_else(|| unknown(&id))?;
    let is_taken = match find(&view, fence)? {
        None => false,
        Some(node) => {
            let input = Input::CallEnded { node, fence, outcome: outcome.clone(), worker: worker_id };
            match app.runtime.submit_with(run, input, Log::read(None, logs)).await {
                Ok(_) => true,
                Err(SubmitError::Refused(Refusal::Stale { .. } | Refusal::Ended { .. })) => false,
                Err(other) => return Err(other.into()),
            }
        }
    };
    let is_taken = is_taken || was_taken(&app, run, fence, &outcome).await?;
    Ok(Json(Reported { id, verdict: if is_taken { Verdict::Ok } else { Verdict::Lost } }))
}

/// Whether the journal says that the call ended just like that: the answer to a report that was taken may get lost,
/// and whoever sends it again is told what was told then.
async fn was_taken(app: &App, run: RunId, fence: u64, outcome: &Outcome) -> Answer<bool> {
    let mut taken = false;
    app.each_entry(run, |_, entry| {
        taken |= entry.events.iter().any(|event| fence > 0 && tells(event, fence, outcome));
    })
    .await?;
    Ok(taken)
}

fn tells(event: &Event, fence: u64, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Done(value) => {
            matches!(event, Event::Done { fence: of, output, .. } if *of == fence && output.as_ref() == Some(value))
        }
        Outcome::Suspended { memo: given, .. } => {
            matches!(event, Event::Suspended { fence: of, memo, .. } if *of == fence && **memo == *given)
        }
        Outcome::Failed(given) => matches!(
            event,
            Event::Failed { fence: of, fault, .. } | Event::Deferred { fence: of, fault, .. }
                if *of == fence && fault == given
        ),
        // Nobody reports these.
        Outcome::Canceled | Outcome::WorkerLost | Outcome::ServerLost => false,
    }
}

fn read(id: &str) -> Answer<(RunId, u64)> {
    let read = || {
        let (run, fence) = id.rsplit_once('.')?;
        Some((run.parse().ok()?, fence.parse().ok()?))
    };
    read().ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(120).collect();
    ApiError::new(Code::UnknownCall, format!("there is no call `{shown}`: its id is `<run>.<fence>`"))
}

/// The node whose call this is, if it may still be answered here.
fn find(view: &RunView, fence: u64) -> Answer<Option<NodePath>> {
    let mut answer = Ok(None);
    // A walk that is cut short has found it.
    let _stopped = shape::each_node(&view.plan, &view.state, &mut |path, found: Found<'_>| {
        let (Some(work), Some(call)) = (found.phase().work(), found.call()) else {
            return ControlFlow::Continue(());
        };
        if work.fence() != Some(fence) {
            return ControlFlow::Continue(());
        }
        let granted = matches!(work.stage, Stage::Granted { .. });
        answer = match &call.exec {
            // Its job, function, script or child says how it ended; a second voice would leave that behind.
            Exec::Queue | Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } if granted => {
                let detail = format!(
                    "the call of `{path}` is answered by whoever performs it: finish its job instead"
                );
                Err(ApiError::new(Code::NotWaiting, detail))
            }
            Exec::Queue | Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } | Exec::Http => {
                Ok(Some(path))
            }
        };
        ControlFlow::Break(())
    });
    answer
}
