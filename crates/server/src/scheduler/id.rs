//! Ids as this surface spells them: `task-…`, `flow-…`, `ver-…`, and ids of attempts and claims.

use uuid::Uuid;
use windlass_engine::counter::Fence;
use windlass_engine::id::{FlowId, JobId, RunId, VersionId};
use windlass_runtime::grant::{self, GrantName};

pub(super) fn task(run: RunId) -> String {
    format!("task-{}", run.uuid())
}

pub(super) fn flow(flow: FlowId) -> String {
    format!("flow-{}", flow.uuid())
}

pub(super) fn version(version: VersionId) -> String {
    format!("ver-{}", version.uuid())
}

/// An attempt: of a call by its grant, of anything else by the event that began it.
pub(super) fn attempt(run: RunId, fence: Fence, event: u64) -> String {
    if fence > Fence::ZERO { grant::named(&run.uuid(), fence) } else { format!("{}.e{event}", run.uuid()) }
}

pub(super) fn read_task(text: &str) -> Option<RunId> {
    read(text, &["task-", "run_", "run-"]).map(RunId::new)
}

pub(super) fn read_flow(text: &str) -> Option<FlowId> {
    read(text, &["flow-", "flow_"]).map(FlowId::new)
}

pub(super) fn read_version(text: &str) -> Option<VersionId> {
    read(text, &["ver-", "ver_"]).map(VersionId::new)
}

/// The id of a run as the native surface spells it; a text that is none stays as it is.
pub(crate) fn run_id(text: &str) -> String {
    read_task(text).map_or_else(|| text.to_owned(), |run| run.to_string())
}

/// The same of a flow.
pub(crate) fn flow_id(text: &str) -> String {
    read_flow(text).map_or_else(|| text.to_owned(), |flow| flow.to_string())
}

/// The run of an attempt, and the grant if it is a call's. The text may have the signature of the grant or not.
pub(super) fn read_attempt(text: &str) -> Option<(RunId, Option<Fence>)> {
    // The signature of a grant may begin with an `e` too: it stands behind a second dot.
    if let Some((run, event)) = text.split_once('.')
        && let Some(event) = event.strip_prefix('e')
    {
        event.parse::<u64>().ok()?;
        return Some((read_task(run)?, None));
    }
    let grant = GrantName::read(text)?;
    Some((read_task(grant.id)?, Some(grant.fence)))
}

pub(super) fn read_job(text: &str) -> Option<JobId> {
    read(text, &["job_", "job-"]).map(JobId::new)
}

/// A UUID behind one of these prefixes, or by itself.
fn read(text: &str, prefixes: &[&str]) -> Option<Uuid> {
    let rest = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    Uuid::try_parse(rest.unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0190a1b2-c3d4-7000-8000-00000000000a";

    #[test]
    fn ids_read_as_they_are_written_and_in_our_own_spelling() {
        let run = RunId::new(Uuid::try_parse(UUID).unwrap());
        assert_eq!(task(run), format!("task-{UUID}"));
        for text in [task(run), run.to_string(), UUID.to_owned()] {
            assert_eq!(read_task(&text), Some(run), "{text}");
        }
        for text in ["", "task-", "flow-0190a1b2-c3d4-7000-8000-00000000000a", "task-é", "run_1"] {
            assert_eq!(read_task(text), None, "{text}");
        }
    }

    #[test]
    fn attempts_name_their_grant() {
        let run = RunId::new(Uuid::try_parse(UUID).unwrap());
        assert_eq!(read_attempt(&attempt(run, Fence(7), 3)), Some((run, Some(Fence(7)))));
        assert_eq!(read_attempt(&attempt(run, Fence(0), 3)), Some((run, None)));
        assert_eq!(read_attempt(&format!("{}.00", attempt(run, Fence(7), 3))), Some((run, Some(Fence(7)))));
        for signature in ["e120be9596e42d", "e12"] {
            let signed = format!("{}.{signature}", attempt(run, Fence(7), 3));
            assert_eq!(read_attempt(&signed), Some((run, Some(Fence(7)))), "{signed}");
        }
        for text in ["", ".", "x.1", &format!("{UUID}."), &format!("{UUID}.-1"), &format!("{UUID}.ex")] {
            assert_eq!(read_attempt(text), None, "{text}");
        }
    }
}
