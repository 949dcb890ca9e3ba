//! Everything that is kept, table by table, as every backend has it.
//!
//! Further columns of a backend (row numbers, counts in parts, derived columns) are its own affair
//! and listed beside its code; tests compare both lists with the tables that are there, so that nothing that is added
//! to them later can be forgotten here.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// The UUID inside of an id.
    Id,
    Bytes,
    Number,
    /// A number of 32 bits, where it makes a difference.
    Small,
    Flag,
    Text,
    /// The events of an entry of a journal.
    Events,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnType,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns by which its rows are told apart.
    pub(crate) key: &'static [&'static str],
    pub(crate) columns: &'static [Column],
}

impl Table {
    /// The place of a column.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The type of a column.
    pub(crate) fn kind(&self, name: &str) -> Option<ColumnType> {
        self.place(name).map(|at| self.columns[at].kind)
    }
}

macro_rules! tables {
    ($($table:ident by ($($key:ident),*) { $($($column:ident)* : $kind:ident),* $(,)? })*) => {
        &[$(Table {
            name: stringify!($table),
            key: &[$(stringify!($key)),*],
            columns: &[$($(Column { name: stringify!($column), kind: ColumnType::$kind }),*),*],
        }),*]
    };
}

/// All tables, in the order in which they are copied: referenced tables come first.
pub(crate) const TABLES: &[Table] = tables! {
    named_flows by (id) { project: Text, id: Id, name description labels: Text, is_template: Flag, latest created_at updated_at: Number }
    versions by (id) {
        project: Text, id flow: Id, number: Number, definition form: Text, lenient: Flag, status note: Text, created_at: Number,
        json writes: Text,
    }
    runs by (id) {
        project: Text, id: Id, len: Number, flow version: Id, request request_digest labels account: Text, parent_run: Id,
        parent_node: Text, parent_fence parent_depth: Number, root schedule: Id, created_at: Number, status: Text,
        round: Number, node action: Text, step_count wake_at: Number, owner_server: Id, owner_epoch: Number,
        cost_estimated cost_actual cost_refunded cost_settled needs: Number, error shared result reopened: Text,
        updated_at ended_at: Number,
    }
    journal by (run, seq) { run: Id, seq v at: Number, command: Id, events: Events, balances: Text }
    snapshots by (run) { run: Id, seq: Number, state: Bytes }
    commands by (id) { project: Text, id: Id, at: Number, balances: Text }
    jobs by (id) {
        project: Text, id: Id, rev: Number, queue name: Text, priority: Small, status: Text, is_open is_dead_letter: Flag,
        due_at wake_at key_until: Number, state: Text, fence: Number, round: Text, attempts_from: Number,
        memo replays: Text, run call_run: Id, call_node: Text, call_fence: Number, schedule: Id,
        limit_key fingerprint: Text, created_at updated_at: Number,
    }
    job_specs by (job) { job: Id, spec payload: Text }
    job_keys by (project, queue, key) { project: Text, queue key: Text, job: Id }
    attempts by (job, number) {
        job: Id, number fence: Number, status worker: Text, created_at started_at finished_at: Number,
        result error: Text, next_retry_at: Number,
    }
    queues by (project, name) { project: Text, name: Text, is_paused: Flag, limits: Text, updated_at turns: Number }
    queue_depths by (project, queue) { project: Text, queue: Text, pending queued running suspended retrying dead: Number }
    queue_rates by (project, queue, limit_key) { project: Text, queue limit_key: Text, full_at: Number }
    accounts by (project, id) { project: Text, id name: Text, balance held revision created_at: Number }
    ledger by (project, account, seq) {
        project: Text, account: Text, seq: Number, kind: Text, amount: Number, key: Text, held borne_by_platform: Number, run: Id,
        node: Text, balance_after at: Number,
    }
    prices by (project, service) { project: Text, service price: Text, updated_at: Number }
    services by (project, name) { project: Text, name settings: Text, updated_at: Number }
    blobs by (project, hash) { project hash: Text, bytes: Bytes }
    blob_refs by (project, hash, run) { project hash: Text, run: Id }
    outbox by (project, sender, seq, part) {
        project: Text, sender: Bytes, seq part: Number, receiver: Bytes, at: Number, note: Text, is_delivered: Flag, tree: Id,
        depth: Number,
    }
    schedules by (id) {
        project: Text, id: Id, rev: Number, name rule target progress: Text, next_at: Number, history: Text,
        created_at updated_at: Number,
    }
    firings by (schedule, slot, is_manual) {
        schedule: Id, slot: Number, is_manual is_run: Flag, started: Id, is_running: Flag,
    }
    logs by (run, entry, fence) { run: Id, entry fence: Number, node: Text, at: Number, text lines: Text }
    servers by (id) { id: Id, epoch: Number, name version: Text, started_at beat_at worker_ttl_ms: Number }
    store_keys by (name) { name: Text, bytes: Bytes }
    api_keys by (id) {
        id project: Text, hash: Bytes, name role: Text, may_script: Flag, scope: Text, created_at: Number,
        created_by: Text, expires_at revoked_at used_at: Number,
    }
    registrations by (project, id) {
        project: Text, id name url kind services queues: Text, load capacity: Number, is_draining: Flag,
        registered_at beat_at: Number, peer replaced secret: Text,
    }
    worker_services by (project, service, worker) { project service worker: Text }
    bulks by (id) { project: Text, id: Id, rev: Number, state: Text, ended_at: Number }
    bulk_targets by (bulk, part) { bulk: Id, part: Number, targets: Text }
    bulk_failures by (bulk, no) { bulk: Id, no: Number, failure: Text }
    samples by (project, scope, at, server) { project scope: Text, at: Number, server: Id, figures: Text }
    audit by (project, seq) { project: Text, seq at: Number, who what subject detail: Text, hash: Bytes }
    audit_heads by (project) { project: Text, seq: Number, hash: Bytes }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_made_of_columns() {
        for table in TABLES {
            assert!(
                !table.key.is_empty() && table.key.iter().all(|name| table.place(name).is_some()),
                "{table:?}"
            );
        }
    }
}
