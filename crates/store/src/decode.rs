//! Rows from columns, written once for both SQL backends: each function expects the columns in the order of its fields,
//! so both backends select them in this order.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::access::identity::KeyTerm;
use windlass_engine::counter::Revision;
use windlass_engine::event::Parent;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::{Attempt, Job, JobSpec};
use windlass_engine::money::{Amount, Movement};
use windlass_engine::run::Totals;

use crate::account::{AccountRow, BalanceWaiter, LedgerRow, Posting, PriceRow};
use crate::api_key::{ApiKeyHash, ApiKeyRow};
use crate::audit::{AuditEntry, AuditHash, AuditHead, AuditRow};
use crate::bulk::{BulkFailure, BulkRow, BulkTarget};
use crate::column::Columns;
use crate::flow::{FlowRow, VersionRow};
use crate::job::{CallRef, JobOrigin, JobOutline, JobRow};
use crate::log::LogRow;
use crate::outbox::{Message, MessageId, Party};
use crate::queue::Spent;
use crate::run::{Origin, Owner, Request, RunProjection, RunRow, RunStatus, Snapshot};
use crate::sample::SampleRow;
use crate::schedule::{ScheduleRow, Scheduled, Started};
use crate::server::ServerRow;
use crate::service::{LiveService, ServiceRow, WaitingService};
use crate::signing::SigningSecret;
use crate::worker::WorkerRow;

/// The first byte of a stored party.
pub(crate) const PARTY_RUN: u8 = 0;
pub(crate) const PARTY_ACCOUNT: u8 = 1;

pub(crate) fn flow<C: Columns>(columns: &mut C) -> Result<FlowRow, C::Error> {
    Ok(FlowRow {
        id: columns.id()?,
        name: columns.text()?,
        description: columns.text()?,
        labels: columns.json()?,
        is_template: columns.flag()?,
        latest: columns.small()?,
        created_at: columns.time()?,
        updated_at: columns.time()?,
    })
}

pub(crate) fn version<C: Columns>(columns: &mut C) -> Result<VersionRow, C::Error> {
    Ok(VersionRow {
        id: columns.id()?,
        flow: columns.id()?,
        number: columns.small()?,
        definition: columns.text()?,
        form: columns.word()?,
        lenient: columns.flag()?,
        status: columns.word()?,
        note: columns.text()?,
        created_at: columns.time()?,
    })
}

pub(crate) fn run<C: Columns>(columns: &mut C) -> Result<RunRow, C::Error> {
    Ok(RunRow {
        project: columns.project()?,
        id: columns.id()?,
        len: columns.number()?,
        origin: origin(columns)?,
        projection: projection(columns)?,
    })
}

fn origin<C: Columns>(columns: &mut C) -> Result<Origin, C::Error> {
    let (flow, version) = (columns.id()?, columns.id()?);
    let (id, digest) = (columns.text_or_none()?, columns.text_or_none()?);
    let request = id.zip(digest).map(|(id, digest)| Request { id, digest });
    let (labels, account) = (columns.json()?, columns.text_or_none()?);
    let (run, node) = (columns.id_or_none()?, columns.path_or_none()?);
    let (fence, depth) = (columns.number_or_none()?, columns.small_or_none()?);
    let root = columns.id_or_none()?;
    let parent = run.zip(node).zip(fence.zip(depth));
    let parent = parent.map(|((run, node), (fence, depth))| Parent {
        run,
        node,
        fence,
        depth,
        root: root.filter(|root| *root != run),
    });
    let (schedule, created_at) = (columns.id_or_none()?, columns.time()?);
    Ok(Origin { flow, version, request, labels, account, parent, schedule, created_at })
}

fn projection<C: Columns>(columns: &mut C) -> Result<RunProjection, C::Error> {
    let status = columns.decode(|word| {
        RunStatus::from_word(word).ok_or_else(|| format!("`{word}` is not a status of a run"))
    })?;
    let (round, node, action) = (columns.small()?, columns.path_or_none()?, columns.text_or_none()?);
    let (step_count, wake_at) = (columns.number()?, columns.time_or_none()?);
    let owner = columns.id_or_none()?.zip(columns.number_or_none()?);
    let owner = owner.map(|(server, epoch)| Owner { server, epoch });
    let cost = Totals {
        estimated: columns.amount()?,
        actual: columns.amount()?,
        refunded: columns.amount()?,
        settled: columns.amount()?,
    };
    Ok(RunProjection {
        status,
        round,
        node,
        action,
        step_count,
        wake_at,
        owner,
        cost,
        needs: columns.integer_or_none()?.map(Amount),
        error: columns.json_or_none()?,
        shared: columns.json_or_none()?,
        result: columns.json_or_none()?,
        updated_at: columns.time()?,
        ended_at: columns.time_or_none()?,
    })
}

/// A job; `attempts` reads those that the job remembers, from the columns behind its own or by another query. A job that
/// was only created has none.
pub(crate) fn job<C: Columns>(
    columns: &mut C,
    attempts: impl FnOnce(&mut C, JobId) -> Result<Vec<Attempt>, C::Error>,
) -> Result<JobRow, C::Error> {
    let (id, rev): (JobId, Revision) = (columns.id()?, columns.number()?);
    let (state, fence, round) = (columns.json()?, columns.number()?, columns.json()?);
    let (memo, replays) = (columns.json_or_none()?, columns.json()?);
    let (run, node): (Option<RunId>, _) = (columns.id_or_none()?, columns.path_or_none()?);
    let call = run.zip(node).zip(columns.number_or_none()?);
    let call = call.map(|((run, node), fence)| CallRef { run, node, fence });
    let origin = JobOrigin { call, schedule: columns.id_or_none()? };
    let (created_at, updated_at) = (columns.time()?, columns.time()?);
    let mut spec: JobSpec = columns.json()?;
    spec.payload = columns.json()?;
    let (spec, first) = (Arc::new(spec), vec![Attempt::first(created_at)]);
    let mut job =
        Job { id, spec, state, fence, round, attempts: first, memo, replays, created_at, updated_at };
    if !job.is_untouched() {
        job.attempts = attempts(columns, id)?;
    }
    Ok(JobRow { rev, job, origin })
}

/// A job without its large payload, whose first column says whether the payload was cut.
pub(crate) fn job_outline<C: Columns>(
    columns: &mut C,
    attempts: impl FnOnce(&mut C, JobId) -> Result<Vec<Attempt>, C::Error>,
) -> Result<JobOutline, C::Error> {
    Ok(JobOutline { is_cut: columns.flag()?, row: job(columns, attempts)? })
}

pub(crate) fn attempt<C: Columns>(columns: &mut C) -> Result<Attempt, C::Error> {
    Ok(Attempt {
        number: columns.small()?,
        fence: columns.number()?,
        status: columns.word()?,
        worker: columns.text_or_none()?,
        created_at: columns.time()?,
        started_at: columns.time_or_none()?,
        finished_at: columns.time_or_none()?,
        result: columns.json_or_none()?,
        error: columns.json_or_none()?,
        next_retry_at: columns.time_or_none()?,
    })
}

/// A schedule; the backend reads what it has started and what still runs.
pub(crate) fn scheduled<C: Columns>(columns: &mut C) -> Result<Scheduled, C::Error> {
    Ok(Scheduled {
        project: columns.project()?,
        rev: columns.number()?,
        row: ScheduleRow {
            schedule: columns.json()?,
            name: columns.text()?,
            target: columns.json()?,
            progress: columns.json()?,
            next_at: columns.time_or_none()?,
            history: columns.json()?,
            created_at: columns.time()?,
            updated_at: columns.time()?,
        },
        running: Vec::new(),
    })
}

pub(crate) fn started(is_run: bool, id: Uuid) -> Started {
    if is_run { Started::Run(RunId::new(id)) } else { Started::Job(JobId::new(id)) }
}

pub(crate) fn account<C: Columns>(columns: &mut C) -> Result<AccountRow, C::Error> {
    Ok(AccountRow {
        id: columns.text()?,
        name: columns.text()?,
        balance: columns.amount()?,
        held: columns.amount()?,
        revision: columns.number()?,
        created_at: columns.time()?,
    })
}

pub(crate) fn ledger<C: Columns>(columns: &mut C) -> Result<LedgerRow, C::Error> {
    let movement = Movement {
        kind: columns.word()?,
        amount: columns.amount()?,
        key: columns.text()?,
        held: columns.amount()?,
        borne_by_platform: columns.amount()?,
    };
    let seq = columns.number()?;
    let posting = Posting { account: columns.text()?, movement };
    Ok(LedgerRow { seq, posting, balance_after: columns.amount()?, at: columns.time()? })
}

pub(crate) fn balance_waiters<C: Columns>(columns: &mut C) -> Result<BalanceWaiter, C::Error> {
    Ok(BalanceWaiter { run: columns.id()?, needs: columns.amount()? })
}

pub(crate) fn price<C: Columns>(columns: &mut C) -> Result<PriceRow, C::Error> {
    Ok(PriceRow { service: columns.text()?, price: columns.json()?, updated_at: columns.time()? })
}

pub(crate) fn worker<C: Columns>(columns: &mut C) -> Result<WorkerRow, C::Error> {
    Ok(WorkerRow {
        id: columns.text()?,
        name: columns.text()?,
        url: columns.text()?,
        kind: columns.text()?,
        services: columns.json()?,
        queues: columns.json()?,
        load: columns.integer()?,
        capacity: columns.integer()?,
        is_draining: columns.flag()?,
        registered_at: columns.time()?,
        beat_at: columns.time()?,
        peer: columns.text()?,
        replaced: columns.json::<Option<Vec<_>>>()?.unwrap_or_default(),
        secret: columns.text_or_none()?.map(SigningSecret::new),
    })
}

pub(crate) fn service<C: Columns>(columns: &mut C) -> Result<ServiceRow, C::Error> {
    Ok(ServiceRow { name: columns.text()?, settings: columns.json()?, updated_at: columns.time()? })
}

pub(crate) fn live_service<C: Columns>(columns: &mut C) -> Result<LiveService, C::Error> {
    Ok(LiveService {
        name: columns.text()?,
        n_workers: columns.number()?,
        capacity: columns.number()?,
        load: columns.number()?,
    })
}

pub(crate) fn waiting_service<C: Columns>(columns: &mut C) -> Result<WaitingService, C::Error> {
    Ok(WaitingService { name: columns.text()?, n_waiting: columns.number()? })
}

pub(crate) fn server<C: Columns>(columns: &mut C) -> Result<ServerRow, C::Error> {
    Ok(ServerRow {
        owner: Owner { server: columns.id()?, epoch: columns.number()? },
        name: columns.text()?,
        version: columns.text()?,
        started_at: columns.time()?,
        beat_at: columns.time()?,
        worker_ttl_ms: columns.number()?,
    })
}

pub(crate) fn api_key<C: Columns>(columns: &mut C) -> Result<ApiKeyRow, C::Error> {
    let (id, project) = (columns.decode(str::parse)?, columns.project()?);
    let hash = columns.bytes()?.try_into().map(ApiKeyHash);
    Ok(ApiKeyRow {
        id,
        project,
        hash: hash.map_err(|_| columns.unreadable(&"a hash of a key has another length"))?,
        name: columns.text()?,
        role: columns.word()?,
        may_script: columns.flag()?,
        scope: columns.json()?,
        created_at: columns.time()?,
        created_by: columns.text()?,
        term: KeyTerm { expires_at: columns.time_or_none()?, revoked_at: columns.time_or_none()? },
        used_at: columns.time_or_none()?,
    })
}

pub(crate) fn audit<C: Columns>(columns: &mut C) -> Result<AuditEntry, C::Error> {
    let seq = columns.number()?;
    let (at, who, what) = (columns.time()?, columns.text()?, columns.text()?);
    let row = AuditRow { at, who, what, subject: columns.text()?, detail: columns.json()? };
    Ok(AuditEntry { seq, row, hash: audit_hash(columns)? })
}

pub(crate) fn audit_head<C: Columns>(columns: &mut C) -> Result<AuditHead, C::Error> {
    Ok(AuditHead { seq: columns.number()?, hash: audit_hash(columns)? })
}

fn audit_hash<C: Columns>(columns: &mut C) -> Result<AuditHash, C::Error> {
    let bytes = columns.bytes()?;
    AuditHash::read(&bytes).map_err(|error| columns.unreadable(&error))
}

pub(crate) fn log<C: Columns>(columns: &mut C) -> Result<LogRow, C::Error> {
    Ok(LogRow {
        run: columns.id()?,
        entry: columns.number()?,
        fence: columns.number()?,
        node: columns.path()?,
        at: columns.time()?,
        text: columns.text()?,
        lines: columns.json()?,
    })
}

pub(crate) fn snapshot<C: Columns>(columns: &mut C) -> Result<Snapshot, C::Error> {
    Ok(Snapshot { seq: columns.number()?, bytes: columns.bytes()? })
}

pub(crate) fn spent<C: Columns>(columns: &mut C) -> Result<Spent, C::Error> {
    Ok(Spent { queue: columns.text()?, limit_key: columns.text()?, full_at: columns.time()? })
}

fn party<C: Columns>(columns: &mut C) -> Result<Party, C::Error> {
    let bytes = columns.bytes()?;
    let read = match bytes.split_first() {
        Some((&PARTY_RUN, id)) => Uuid::from_slice(id).ok().map(|id| Party::Run(RunId::new(id))),
        Some((&PARTY_ACCOUNT, name)) => String::from_utf8(name.to_vec()).ok().map(Party::Account),
        Some(_) | None => None,
    };
    read.ok_or_else(|| columns.unreadable(&"it is neither a run nor an account"))
}

pub(crate) fn message_id<C: Columns>(columns: &mut C) -> Result<MessageId, C::Error> {
    Ok(MessageId { sender: party(columns)?, seq: columns.number()?, part: columns.small()? })
}

pub(crate) fn message<C: Columns>(columns: &mut C) -> Result<Message, C::Error> {
    let (id, to) = (message_id(columns)?, party(columns)?);
    Ok(Message { id, to, at: columns.time()?, note: columns.json()? })
}

pub(crate) fn bulk<C: Columns>(columns: &mut C) -> Result<BulkRow, C::Error> {
    Ok(BulkRow {
        project: columns.project()?,
        id: columns.id()?,
        rev: Revision(columns.number()?),
        state: columns.json()?,
        ended_at: columns.time_or_none()?,
    })
}

pub(crate) fn bulk_targets<C: Columns>(columns: &mut C) -> Result<Vec<BulkTarget>, C::Error> {
    columns.json()
}

pub(crate) fn bulk_failure<C: Columns>(columns: &mut C) -> Result<BulkFailure, C::Error> {
    let _ = (columns.uuid()?, columns.integer()?);
    columns.json()
}

pub(crate) fn sample<C: Columns>(columns: &mut C) -> Result<SampleRow, C::Error> {
    Ok(SampleRow {
        scope: columns.text()?,
        at: columns.time()?,
        server: columns.id()?,
        figures: columns.text()?,
    })
}
