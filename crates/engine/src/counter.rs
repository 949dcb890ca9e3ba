//! Counters of runs, jobs and servers. Each is a type of its own, so that one cannot be passed for another.
//!
//! ```compile_fail
//! use windlass_engine::counter::{Fence, Revision};
//!
//! fn guard(expected: Revision) {}
//! guard(Fence(1));
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Before the first.
            pub const ZERO: $name = $name(0);

            /// The next one. Counters stop at the largest number, which no server reaches.
            #[must_use]
            pub fn next(self) -> $name {
                $name(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<u64> for $name {
            fn from(n: u64) -> Self {
                $name(n)
            }
        }

        impl From<$name> for u64 {
            fn from(counter: $name) -> u64 {
                counter.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }
    };
}

counter! {
    /// A grant of work. It only grows; every claim of a job and every call of a run has a new one, and a report under an
    /// older one is refused. Zero = never granted.
    Fence
}

counter! {
    /// An entry into a node. All attempts of a visit share one idempotency key and one charge. Zero = never entered.
    Visit
}

counter! {
    /// A start of a server, numbered by the store. A restarted server has a new epoch, so calls made before the restart
    /// can be recognized. Zero = no server.
    Epoch
}

counter! {
    /// A version of a row: every write of a job, a schedule or an account has the next one. A commit names the revision it
    /// has read, and is refused if the row has moved on. Zero = not written yet.
    Revision
}

counter! {
    /// A position in an append-only list: the journal of a run, the ledger of an account, the audit, the messages of a
    /// sender. Journals, ledgers and the audit begin at 1 and have no gaps, so that the position of their last entry is
    /// also their length. Zero = before the first.
    Seq
}
