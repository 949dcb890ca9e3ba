//! Tables whose rows are read many at a time, with their keys: a row that cannot be decoded is named by its key.

use uuid::Uuid;
use windlass_engine::id::{BulkId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};

/// A table and the columns of its key, as they are named in the query.
pub(crate) struct KeyedTable {
    pub(crate) name: &'static str,
    pub(crate) key: &'static [&'static str],
    /// The written form of an id in the key.
    pub(crate) id: fn(Uuid) -> String,
}

macro_rules! tables {
    ($($constant:ident: $name:literal, [$($key:literal),*], $id:ty;)*) => {
        $(pub(crate) const $constant: KeyedTable =
            KeyedTable { name: $name, key: &[$($key),*], id: |uuid| <$id>::new(uuid).to_string() };)*
    };
}

tables! {
    FLOWS: "named_flows", ["id"], FlowId;
    VERSIONS: "versions", ["id"], VersionId;
    RUNS: "runs", ["id"], RunId;
    JOURNAL: "journal", ["run", "seq"], RunId;
    JOBS: "jobs", ["id"], JobId;
    ATTEMPTS: "attempts", ["job", "number"], JobId;
    QUEUES: "queues", ["name"], JobId;
    QUEUE_RATES: "queue_rates", ["queue", "limit_key"], JobId;
    ACCOUNTS: "accounts", ["id"], RunId;
    PRICES: "prices", ["service"], RunId;
    OUTBOX: "outbox", ["sender", "seq", "part"], RunId;
    SCHEDULES: "schedules", ["id"], ScheduleId;
    AUDIT: "audit", ["seq"], RunId;
    LOGS: "logs", ["run", "entry", "fence"], RunId;
    WORKERS: "registrations", ["id"], ServerId;
    SERVICES: "services", ["name"], ServerId;
    SERVERS: "servers", ["id"], ServerId;
    API_KEYS: "api_keys", ["id"], ServerId;
    BULKS: "bulks", ["id"], BulkId;
    BULK_FAILURES: "bulk_failures", ["bulk", "no"], BulkId;
    SAMPLES: "samples", ["scope", "at", "server"], ServerId;
}
