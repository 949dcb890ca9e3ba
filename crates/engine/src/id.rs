//! Ids are types: a UUID inside, a prefix outside, so that a job's id can never be taken for a run's.
//! They are made outside the engine and passed in; the engine only derives some from others.

use crate::counter::Fence;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text was not an id of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind: expected `{prefix}_` and a UUID, got `{text}`")]
pub struct IdError {
    pub prefix: &'static str,
    pub text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a UUID that the runtime made.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// The first and the last id that begin with this text: hexadecimal digits, with or without the prefix of
            /// the kind. `None` = no id begins so.
            pub fn range(beginning: &str) -> Option<(Self, Self)> {
                let digits = beginning.strip_prefix(concat!($prefix, "_")).unwrap_or(beginning);
                let digits: String = digits.chars().filter(|c| *c != '-').collect();
                if digits.is_empty() || digits.len() > 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                let filled = |fill: &str| {
                    let text = format!("{digits}{}", fill.repeat(32 - digits.len()));
                    u128::from_str_radix(&text, 16).ok().map(|n| Self(Uuid::from_u128(n)))
                };
                Some((filled("0")?, filled("f")?))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(self.0.simple().encode_lower(&mut Uuid::encode_buffer()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(|rest| Uuid::try_parse(rest).ok())
                    .map(Self)
                    .ok_or_else(|| IdError { prefix: $prefix, text: text.chars().take(80).collect() })
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

id!(
    /// A named definition.
    FlowId, "flow");
id!(
    /// One immutable, numbered definition of a flow.
    VersionId, "ver");
id!(
    /// One execution of a version.
    RunId, "run");
id!(
    /// One unit of work in a queue.
    JobId, "job");
id!(
    /// A rule that starts a job or a run at certain times.
    ScheduleId, "sched");
id!(
    /// One action on many runs.
    BulkId, "bulk");
id!(
    /// One mutating command, written in the same transaction as its changes, so that an unknown outcome can be
    /// looked up instead of guessed.
    CommandId, "cmd");
id!(
    /// One Windlass process.
    ServerId, "srv");

impl JobId {
    /// The job that carries one call of a run: the same call always has the same job.
    pub fn of_call(run: RunId, fence: Fence) -> Self {
        Self(derive(run.0, fence.0))
    }
}

impl CommandId {
    /// The command of a request that names itself: the same text always has the same command.
    pub fn of_text(text: &str) -> Self {
        // FNV-1a: a client that picks colliding texts affects only its own ids.
        let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let fold =
            |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        Self(uuid::Builder::from_custom_bytes(text.bytes().fold(start, fold).to_be_bytes()).into_uuid())
    }
}

impl RunId {
    /// The child run that a call of `parent` starts: the same call always has the same child.
    pub fn of_call(parent: RunId, fence: Fence) -> Self {
        Self(derive(parent.0, fence.0 ^ (1 << 63)))
    }
}

/// An id for a thing that `from` makes at a moment: its head is that moment, so that such ids sort by it. `n` tells several of
/// one moment apart.
pub(crate) fn derive_at(from: Uuid, at_ms: i64, n: u64) -> Uuid {
    let (high, low) = from.as_u64_pair();
    let head = at_ms.max(0).unsigned_abs() << 16;
    derive(Uuid::from_u64_pair(head, low ^ mix(high)), n ^ mix(at_ms.unsigned_abs()))
}

/// Mixes a number into a UUID and keeps the result a valid version 8 UUID; the time-ordered head is kept.
fn derive(from: Uuid, n: u64) -> Uuid {
    let (high, low) = from.as_u64_pair();
    let mixed = mix(low ^ mix(n.wrapping_add(high)));
    let head = (high & 0xffff_ffff_ffff_0000) | 0x8000 | (mixed >> 52);
    let tail = (mixed & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    Uuid::from_u64_pair(head, tail)
}

/// A fixed bijective scrambling of 64 bits (the finaliser known as splitmix64).
pub(crate) fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_prints_with_its_prefix_and_reads_back() {
        let run = RunId::new(Uuid::from_u128(7));
        assert_eq!(run.to_string(), "run_00000000000000000000000000000007");
        assert_eq!(run.to_string().parse(), Ok(run));
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let job = JobId::new(Uuid::from_u128(7)).to_string();
        let error = job.parse::<RunId>().unwrap_err();
        assert_eq!(error.prefix, "run");
        assert!("run_7".parse::<RunId>().is_err());
        assert!("".parse::<RunId>().is_err());
    }

    #[test]
    fn a_text_always_has_the_same_command() {
        assert_eq!(CommandId::of_text("replay 1"), CommandId::of_text("replay 1"));
        let some: std::collections::BTreeSet<_> =
            (0..10_000).map(|n| CommandId::of_text(&format!("replay {n}"))).collect();
        assert_eq!(some.len(), 10_000);
        assert_eq!(CommandId::of_text("").uuid().get_version_num(), 8);
    }

    #[test]
    fn derived_ids_are_stable_and_distinct() {
        let run = RunId::new(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let jobs: std::collections::BTreeSet<JobId> =
            (0..10_000).map(|n| JobId::of_call(run, Fence(n))).collect();
        assert_eq!(jobs.len(), 10_000);
        assert_eq!(JobId::of_call(run, Fence(5)), JobId::of_call(run, Fence(5)));
        assert_ne!(JobId::of_call(run, Fence(5)).uuid(), RunId::of_call(run, Fence(5)).uuid());
        assert_eq!(JobId::of_call(run, Fence(5)).uuid().get_version_num(), 8);
    }
}
