//! Reports about calls: the end of a call that was suspended, or that a push worker accepted. A report that was
//! accepted before is accepted again, so that a client can repeat it when the response was lost.

use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::Event;
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input, Refusal};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_store::run::Since;

use super::{RunView, Runs, SubmitOptions};
use crate::calls::log::Log;
use crate::part::RuntimePart;
use crate::{RuntimeError, SubmitError};

/// Entries of a journal that are read at once.
const ENTRIES_MAX: usize = 1_000;

/// The end of a call, as a client reports it.
#[derive(Debug, Clone)]
pub struct CallEnd {
    pub run: RunId,
    pub fence: Fence,
    pub outcome: CallOutcome,
    pub worker: Option<String>,
    pub log: Log,
}

/// Why a report was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// A job, a function, a script or a child run ends the call.
    #[error("the call of `{0}` is not open to reports: finish its job instead")]
    NotReportable(NodePath),
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl From<RuntimeError> for ReportError {
    fn from(error: RuntimeError) -> Self {
        ReportError::Submit(error.into())
    }
}

impl Runs {
    /// Ends a call. `false`: the call belongs to another attempt now, or has ended otherwise.
    pub async fn report_call(&self, end: CallEnd) -> Result<bool, ReportError> {
        let CallEnd { run, fence, outcome, worker, log } = end;
        let view = self.view(run).await?.ok_or(ReportError::UnknownRun(run))?;
        if let Some(node) = reportable(&view, fence)? {
            let input = Input::CallEnded { node, fence, outcome: outcome.clone(), worker };
            match self.submit_with(run, input, SubmitOptions::with_log(log)).await {
                Ok(_) => return Ok(true),
                Err(SubmitError::Refused(Refusal::Stale { .. } | Refusal::Ended { .. })) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(was_reported(self, run, fence, &outcome).await?)
    }
}

/// Whether the journal has this end of the call.
async fn was_reported(
    runs: &Runs,
    run: RunId,
    fence: Fence,
    outcome: &CallOutcome,
) -> Result<bool, RuntimeError> {
    let mut after = Seq::ZERO;
    loop {
        let part = runs.store().journal(runs.project(), run, Since::Entry(after), ENTRIES_MAX).await?;
        let mut events = part.entries.iter().flat_map(|(_, entry)| &entry.events);
        if fence > Fence::ZERO && events.any(|event| is_end(event, fence, outcome)) {
            return Ok(true);
        }
        match part.entries.last() {
            Some((seq, _)) if part.entries.len() == ENTRIES_MAX => after = *seq,
            Some(_) | None => return Ok(false),
        }
    }
}

/// The node whose open call has this fence.
fn reportable(view: &RunView, fence: Fence) -> Result<Option<NodePath>, ReportError> {
    let open = view.state.open_calls(&view.plan).into_iter().find(|(_, of, _)| *of == fence);
    let Some((node, _, exec)) = open else { return Ok(None) };
    let is_granted = || view.state.granted_calls(&view.plan).iter().any(|(_, of, ..)| *of == fence);
    match exec {
        Exec::Queue | Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } if is_granted() => {
            Err(ReportError::NotReportable(node))
        }
        Exec::Queue | Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } | Exec::Http => Ok(Some(node)),
    }
}

fn is_end(event: &Event, fence: Fence, outcome: &CallOutcome) -> bool {
    match outcome {
        CallOutcome::Done(value) => {
            matches!(event, Event::Done { fence: of, output, .. } if *of == fence && output.as_ref() == Some(value))
        }
        CallOutcome::Suspended { memo: given, .. } => {
            matches!(event, Event::Suspended { fence: of, memo, .. } if *of == fence && **memo == *given)
        }
        CallOutcome::Failed(given) => matches!(
            event,
            Event::Failed { fence: of, fault, .. } | Event::Deferred { fence: of, fault, .. }
                if *of == fence && fault == given
        ),
        // Clients cannot report these.
        CallOutcome::Canceled | CallOutcome::WorkerLost | CallOutcome::ServerLost => false,
    }
}
