//! New jobs.
//!
//! All that is asked for at once is written in one commit. Those whose deduplication key is taken are told by the
//! store, all in one refusal, and the others are then committed without them.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::money::job_of_key;
use windlass_engine::problem::{Problem, Problems};
use windlass_store::commit::JobChange;
use windlass_store::job::JobOrigin;
use windlass_store::{Duplicate, Refusal, StoreError};

use super::change::new_command;
use super::finish::{AGAIN, TRIES};
use super::written;
use crate::{Runtime, RuntimeError};

/// Jobs that can be created at once.
pub const BATCH_MAX: usize = 10_000;
/// With more than this, the texts of a batch are made where nobody else waits for it.
const QUICK_MAX: usize = 256;
/// Jobs that the index is told of at once: nobody is to wait for thousands of others.
const TOLD_MAX: usize = 500;

/// What became of a request to create a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub job: JobId,
    /// Of the job as a whole: `queued`, or `pending` before its time; of one that was there, whatever it is.
    pub status: &'static str,
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
    Short { account: String, needed: i64, balance: i64, places: Vec<Problem> },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        CreateError::Runtime(error.into())
    }
}

impl Runtime {
    /// Creates a job; answered when it is durable.
    pub async fn create_job(&self, spec: JobSpec) -> Result<Created, CreateError> {
        self.admit()?;
        let id = JobId::new(Uuid::now_v7());
        let spec = self.priced(vec![spec]).await?.pop().ok_or(RuntimeError::Broken)?;
        let job = Job::made(id, unowned(spec), self.clock().now()).map_err(CreateError::Problems)?;
        if let Some(account) = &job.spec.account
            && self.store().account(account).await?.is_none()
        {
            let mut problems = Problems::default();
            unknown_account(&mut problems, "$.", account);
            return Err(CreateError::Problems(problems.into_list()));
        }
        let created = Created { job: id, status: job.status(), created: true };
        let (runtime, changes) = (self.clone(), vec![new(job)]);
        let taken = self.to_the_end(async move { runtime.write_new(changes).await }).await?;
        let taken = taken.map_err(|error| short(error, |_| "$.".to_owned()))?;
        Ok(answer(created, &taken))
    }

    /// Creates jobs, at most [`BATCH_MAX`], all or, when something is wrong with one of them, none; answers in order.
    pub async fn create_jobs(&self, specs: Vec<JobSpec>) -> Result<Vec<Created>, CreateError> {
        self.admit()?;
        if specs.is_empty() || specs.len() > BATCH_MAX {
            let mut problems = Problems::default();
            let reason =
                format!("there are {} jobs in it; 1 to {BATCH_MAX} are allowed at once", specs.len());
            problems.error("$", reason);
            return Err(CreateError::Problems(problems.into_list()));
        }
        let runtime = self.clone();
        if specs.len() <= QUICK_MAX {
            return self.to_the_end(async move { runtime.create_all(specs).await }).await?;
        }
        let here = tokio::runtime::Handle::current();
        let work = move || here.block_on(runtime.create_all(specs));
        self.tasks().spawn_blocking(work).await.map_err(|_| RuntimeError::Broken)?
    }

    async fn create_all(&self, specs: Vec<JobSpec>) -> Result<Vec<Created>, CreateError> {
        let unknown = self.unknown_accounts(&specs).await?;
        let specs = self.priced(specs).await?;
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
        let all: Vec<Created> = changes
            .iter()
            .map(|change| Created { job: change.job.id, status: change.job.status(), created: true })
            .collect();
        let taken = self.write_new(changes).await.map_err(|error| {
            let places: HashMap<JobId, usize> =
                all.iter().enumerate().map(|(n, created)| (created.job, n)).collect();
            short(error, |job| format!("$[{}].", places.get(&job).copied().unwrap_or_default()))
        })?;
        Ok(all.into_iter().map(|created| answer(created, &taken)).collect())
    }

    /// Of the accounts that these jobs name, those that nobody has opened. One that is no name is a problem anyway.
    async fn unknown_accounts(&self, specs: &[JobSpec]) -> Result<BTreeSet<String>, StoreError> {
        let named: BTreeSet<&String> = specs.iter().filter_map(|spec| spec.account.as_ref()).collect();
        let mut unknown = BTreeSet::new();
        for account in named {
            if !account.trim().is_empty() && self.store().account(account).await?.is_none() {
                unknown.insert(account.clone());
            }
        }
        Ok(unknown)
    }

    /// Writes new jobs, all that have no duplicate; tells which have one.
    async fn write_new(
        &self,
        mut changes: Vec<JobChange>,
    ) -> Result<HashMap<JobId, Duplicate>, RuntimeError> {
        let mut taken = HashMap::new();
        for _ in 0..TRIES {
            match self.commit_once(new_command(), changes.clone()).await {
                Ok(()) => {
                    self.tell_of(changes);
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
        Err(RuntimeError::Busy { retry_after: AGAIN })
    }

    /// Tells the index of what was written, a part at a time.
    pub(super) fn tell_of(&self, changes: Vec<JobChange>) {
        self.tallies().changed(&changes, self.clock().now());
        self.relay_jobs(&changes);
        let mut rows = changes.into_iter().map(written).peekable();
        while rows.peek().is_some() {
            self.jobs().heard(rows.by_ref().take(TOLD_MAX));
        }
    }
}

/// Which jobs a short balance does not bear, each with its place in the request.
fn short(error: RuntimeError, place: impl Fn(JobId) -> String) -> CreateError {
    let RuntimeError::Store(StoreError::Refused(Refusal::Short { account, needed, balance, keys, .. })) =
        error
    else {
        return CreateError::Runtime(error);
    };
    let mut problems = Problems::default();
    for job in keys.iter().filter_map(|key| job_of_key(key)) {
        problems
            .error(format!("{}account", place(job)), format!("account `{account}` cannot bear it as well"));
    }
    CreateError::Short { account, needed, balance, places: problems.into_list() }
}

/// What is asked for from outside is nobody's call.
fn unowned(spec: JobSpec) -> JobSpec {
    JobSpec { run: None, ..spec }
}

fn new(job: Job) -> JobChange {
    JobChange { expected_rev: 0, job, origin: JobOrigin::default() }
}

/// What whoever asked is told: of the job, or of the one that was there. The one that was there may itself have given
/// way to another while the batch was written.
fn answer(created: Created, taken: &HashMap<JobId, Duplicate>) -> Created {
    let mut told = created;
    // A job gives way to an earlier one of its batch or to a stored one, so that this ends.
    while let Some(duplicate) = taken.get(&told.job) {
        told = Created { job: duplicate.existing, status: duplicate.status.whole_word(), created: false };
    }
    told
}

fn unknown_account(problems: &mut Problems, at: &str, account: &str) {
    let reason = format!("there is no account `{account}`; open it first, or leave it out");
    problems.error(format!("{at}account"), reason);
}
