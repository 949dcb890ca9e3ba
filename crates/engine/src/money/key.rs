//! Keys of charges: each names its purpose, so that nothing is charged twice.

use std::fmt::Write as _;

use uuid::Uuid;

use crate::counter::Visit;
use crate::id::{JobId, RunId};
use crate::path::NodePath;

use super::MovementKind;

/// The kind at the beginning of a key, and the purpose of the posting.
pub(super) fn parts_of_key(key: &str) -> Option<(&str, &str)> {
    // A loop over a few bytes: this is asked many times for every movement.
    let at = key.bytes().position(|byte| byte == b':')?;
    Some((&key[..at], &key[at + 1..]))
}

/// The key of a movement of this kind for a subject.
pub(super) fn key_of(kind: MovementKind, subject: &str) -> String {
    let mut key = String::with_capacity(kind.word().len() + 1 + subject.len());
    for part in [kind.word(), ":", subject] {
        key.push_str(part);
    }
    key
}

/// The key of the charge for one visit of a node. The path is unique within the run, and the visit within the path.
pub fn charge_key(run: RunId, path: &str, visit: Visit) -> String {
    // The words around the path: `charge:run_` with its UUID, and a number.
    let mut key = String::with_capacity(64 + path.len());
    let mut digits = Uuid::encode_buffer();
    // Piece by piece: this is made for every movement, and formatting takes longer.
    for part in ["charge:", RunId::PREFIX, "_", run.uuid().simple().encode_lower(&mut digits), "/", path, "/"]
    {
        key.push_str(part);
    }
    write!(key, "{visit}").expect("memory takes it");
    key
}

/// The node of a charge and of the posting that closes it, from a key made by [`charge_key`]; a payment has none.
pub fn node_of_key(key: &str) -> Option<NodePath> {
    let (_, subject) = parts_of_key(key)?;
    let (_, place) = subject.split_once('/')?;
    let (path, _) = place.rsplit_once('/')?;
    Some(NodePath::from(path))
}

/// The run of a charge and of the posting that closes it, and their purpose: the node and its visit. From a key
/// made by [`charge_key`]; no other key has one.
pub fn place_of_key(key: &str) -> Option<(RunId, &str)> {
    /// `run_` and a UUID as ids write it.
    const RUN_LEN: usize = 36;
    let (kind, subject) = parts_of_key(key)?;
    let (run, place) = subject.split_at_checked(RUN_LEN)?;
    let place = place.strip_prefix('/')?;
    // All bytes are looked at, which is faster than to stop at the first.
    let is_plain =
        run.bytes().fold(true, |is_plain, byte| is_plain & !byte.is_ascii_uppercase() & (byte != b'/'));
    let may_have_one = is_plain && kind != MovementKind::Deposit.word() && place.contains('/');
    may_have_one.then(|| run.parse().ok()).flatten().map(|run| (run, place))
}

/// The key of the charge for one round of a plain job.
pub fn job_charge_key(job: JobId, round: u32) -> String {
    format!("charge:{job}/{round}")
}

/// The job of a charge and of the posting that closes it, from a key made by [`job_charge_key`].
pub fn job_of_key(key: &str) -> Option<JobId> {
    let (_, subject) = key.split_once(':')?;
    let (job, _) = subject.split_once('/')?;
    job.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Amount;
    use crate::money::Movement;

    fn key(n: u64) -> String {
        charge_key(RunId::new(Uuid::from_u128(1)), "tts/3", Visit(n))
    }

    #[test]
    fn a_key_names_the_visit() {
        assert_eq!(key(2), "charge:run_00000000000000000000000000000001/tts/3/2");
        assert_eq!(
            Movement::refund(&key(2), Amount(5)).key,
            "refund:run_00000000000000000000000000000001/tts/3/2"
        );
    }

    #[test]
    fn the_node_of_a_movement_is_in_its_key() {
        assert_eq!(node_of_key(&key(17)), Some(NodePath::from("tts/3")));
        assert_eq!(node_of_key(&Movement::refund(&key(1), Amount(5)).key), Some(NodePath::from("tts/3")));
        assert_eq!((node_of_key("deposit:first"), node_of_key("")), (None, None));
    }

    #[test]
    fn the_run_of_a_movement_is_in_its_key() {
        let run = RunId::new(Uuid::from_u128(1));
        assert_eq!(place_of_key(&key(17)), Some((run, "tts/3/17")));
        assert_eq!(
            place_of_key(&Movement::settle(&key(17), Amount(5), Amount(3)).key),
            Some((run, "tts/3/17"))
        );
        let payment = Movement::deposit("run_00000000000000000000000000000001/a/1", Amount(5)).key;
        let shouted = key(1).replace("run_0", "run_A");
        let job = job_charge_key(JobId::new(Uuid::from_u128(7)), 2);
        for other in [&payment, &shouted, &job, "charge:x", "charge:run_1/a/1", ""] {
            assert_eq!(place_of_key(other), None, "{other}");
        }
    }

    #[test]
    fn the_job_of_a_movement_is_in_its_key() {
        let job = JobId::new(Uuid::from_u128(7));
        let charge = job_charge_key(job, 2);
        assert_eq!(charge, "charge:job_00000000000000000000000000000007/2");
        assert_eq!(job_of_key(&Movement::settle(&charge, Amount(5), Amount(3)).key), Some(job));
        assert_eq!((job_of_key(&key(1)), node_of_key(&charge)), (None, None));
    }
}
