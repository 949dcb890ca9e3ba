//! Creation of jobs.
//!
//! All jobs of a request are written in one commit. The store rejects those with a taken deduplication key, all in one
//! refusal, and the others are then committed without them.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::money::{Amount, job_of_key};
use windlass_engine::problem::{Problem, Problems};
use windlass_store::commit::JobChange;
use windlass_store::job::{JobOrigin, JobStatus};
use windlass_store::{Duplicate, Refusal, StoreError};

use super::change::new_command;
use super::finish::{ATTEMPTS_MAX, RETRY_DELAY};
use super::written;
use crate::RuntimeError;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

/// Jobs that can be created at once.
pub const BATCH_MAX: usize = 10_000;
/// Larger batches are validated on a blocking thread.
const QUICK_MAX: usize = 256;
/// Jobs that the dispatcher receives at once, so that its lock is never held for thousands of jobs.
const TOLD_MAX: usize = 500;

/// The result of a request to create a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedJob {
    pub job: JobId,
    /// The status of the new job, or of the job that holds its deduplication key.
    pub status: JobStatus,
    /// `false`: one with the same deduplication key was there.
    pub created: bool,
}

/// Why no job was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Everything that is wrong; paths begin with `$.`, or with `$[n].` when several were asked for.
    #[error("the job cannot be created: {} problems", .0.len())]
    Problems(Vec<Problem>),
    /// Nothing was created and nothing charged: those of these places cannot be paid for.
    #[error(
        "insufficient_balance: {needed} are needed for all that was asked, and account `{account}` has {balance}; \
         deposit at least {}", .needed.saturating_sub(*.balance)
    )]
    InsufficientFunds { account: String, needed: Amount, balance: Amount, places: Vec<Problem> },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        CreateError::Runtime(error.into())
    }
}

impl Jobs {
    /// Creates a job; answered when it is durable.
    pub async fn create_job(&self, spec: JobSpec) -> Result<CreatedJob, CreateError> {
        self.runs().admit()?;
        let id = JobId::new(Uuid::now_v7());
        let spec = self.money().priced(vec![spec]).await?.pop().ok_or(RuntimeError::Broken)?;
        let job = Job::made(id, unowned(spec), self.clock().now()).map_err(CreateError::Problems)?;
        if let Some(account) = &job.spec.account
            && self.store().account(self.project(), account).await?.is_none()
        {
            let mut problems = Problems::default();
            unknown_account(&mut problems, "$.", account);
            return Err(CreateError::Problems(problems.into_list()));
        }
        let created = CreatedJob { job: id, status: JobStatus::of(&job), created: true };
        let (jobs, changes) = (self.clone(), vec![new(job)]);
        let taken = self.ctx().to_the_end(async move { jobs.write_new(changes).await }).await?;
        let taken = taken.map_err(|error| short(error, |_| "$.".to_owned()))?;
        Ok(answer(created, &taken))
    }

    /// Creates jobs, at most [`BATCH_MAX`], all or, when something is wrong with one of them, none; answers in order.
    pub async fn create_jobs(&self, specs: Vec<JobSpec>) -> Result<Vec<CreatedJob>, CreateError> {
        self.runs().admit()?;
        if specs.is_empty() || specs.len() > BATCH_MAX {
            let mut problems = Problems::default();
            let reason =
                format!("there are {} jobs in it; 1 to {BATCH_MAX} are allowed at once", specs.len());
            problems.error("$", reason);
            return Err(CreateError::Problems(problems.into_list()));
        }
        let jobs = self.clone();
        if specs.len() <= QUICK_MAX {
            return self.ctx().to_the_end(async move { jobs.create_all(specs).await }).await?;
        }
        let here = tokio::runtime::Handle::current();
        let work = move || here.block_on(jobs.create_all(specs));
        self.tasks().spawn_blocking(work).await.map_err(|_| RuntimeError::Broken)?
    }

    async fn create_all(&self, specs: Vec<JobSpec>) -> Result<Vec<CreatedJob>, CreateError> {
        let unknown = self.unknown_accounts(&specs).await?;
        let specs = self.money().priced(specs).await?;
        let now = self.clock().now();
        let mut problems = Problems::default();
        let mut changes = Vec::with_capacity(specs.len());
        for (n, spec) in specs.into_iter().enumerate() {
            if let Some(account) = spec.account.as_ref().filter(|account| unknown.contains(*account)) {
                unknown_account(&mut problems, &format!("$[{n}]."), account);
            }
            match Job::made(JobId::new(Uuid::now_v7()), unowned(spec), now) {
                Ok(job) => changes.push(new(job)),
                Err(found) => found.into_iter().for_each(|problem| {
                    let path = format!("$[{n}]{}", problem.path.trim_start_matches('$'));
                    problems.error_hint(path, problem.reason, problem.hint);
                }),
            }
        }
        if problems.has_errors() {
            return Err(CreateError::Problems(problems.into_list()));
        }
        let all: Vec<CreatedJob> = changes
            .iter()
            .map(|change| CreatedJob {
                job: change.job.id,
                status: JobStatus::of(&change.job),
                created: true,
            })
            .collect();
        let taken = self.write_new(changes).await.map_err(|error| {
            let places: HashMap<JobId, usize> =
                all.iter().enumerate().map(|(n, created)| (created.job, n)).collect();
            short(error, |job| format!("$[{}].", places.get(&job).copied().unwrap_or_default()))
        })?;
        Ok(all.into_iter().map(|created| answer(created, &taken)).collect())
    }

    /// The named accounts that do not exist. An invalid name is a problem anyway.
    async fn unknown_accounts(&self, specs: &[JobSpec]) -> Result<BTreeSet<String>, StoreError> {
        let named: BTreeSet<&String> = specs.iter().filter_map(|spec| spec.account.as_ref()).collect();
        let mut unknown = BTreeSet::new();
        for account in named {
            if !account.trim().is_empty() && self.store().account(self.project(), account).await?.is_none() {
                unknown.insert(account.clone());
            }
        }
        Ok(unknown)
    }

    /// Writes new jobs without a duplicate; returns the duplicates of the others.
    async fn write_new(
        &self,
        mut changes: Vec<JobChange>,
    ) -> Result<HashMap<JobId, Duplicate>, RuntimeError> {
        let mut taken = HashMap::new();
        for _ in 0..ATTEMPTS_MAX {
            match self.commit_once(new_command(), changes.clone()).await {
                Ok(()) => {
                    self.offer_created(changes);
                    return Ok(taken);
                }
                Err(StoreError::Refused(Refusal::Duplicates(duplicates))) => {
                    taken.extend(duplicates.into_iter().map(|duplicate| (duplicate.job, duplicate)));
                    changes.retain(|change| !taken.contains_key(&change.job.id));
                    if changes.is_empty() {
                        return Ok(taken);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY })
    }

    /// Passes written jobs to the dispatcher, a part at a time.
    pub(super) fn offer_created(&self, changes: Vec<JobChange>) {
        self.stats().record_jobs(&changes, self.clock().now());
        self.relay().relay_jobs(&changes);
        self.tell_watchers(&changes);
        let mut rows = changes.into_iter().map(written).peekable();
        while rows.peek().is_some() {
            self.state().offer_rows(rows.by_ref().take(TOLD_MAX));
        }
    }
}

/// Which jobs a short balance does not bear, each with its place in the request.
fn short(error: RuntimeError, place: impl Fn(JobId) -> String) -> CreateError {
    let RuntimeError::Store(StoreError::Refused(Refusal::InsufficientFunds {
        account,
        needed,
        balance,
        keys,
        ..
    })) = error
    else {
        return CreateError::Runtime(error);
    };
    let mut problems = Problems::default();
    for job in keys.iter().filter_map(|key| job_of_key(key)) {
        problems
            .error(format!("{}account", place(job)), format!("account `{account}` cannot bear it as well"));
    }
    CreateError::InsufficientFunds { account, needed, balance, places: problems.into_list() }
}

/// A job from outside belongs to no run.
fn unowned(spec: JobSpec) -> JobSpec {
    JobSpec { run: None, ..spec }
}

fn new(job: Job) -> JobChange {
    JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() }
}

/// The answer for one job: itself, or the existing job with its key. That one may itself be a duplicate within the
/// batch.
fn answer(created: CreatedJob, taken: &HashMap<JobId, Duplicate>) -> CreatedJob {
    let mut told = created;
    // A job gives way to an earlier one of its batch or to a stored one, so that this ends.
    while let Some(duplicate) = taken.get(&told.job) {
        told = CreatedJob { job: duplicate.existing, status: duplicate.status, created: false };
    }
    told
}

fn unknown_account(problems: &mut Problems, at: &str, account: &str) {
    let reason = format!("there is no account `{account}`; open it first, or leave it out");
    problems.error(format!("{at}account"), reason);
}
