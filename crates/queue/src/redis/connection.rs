//! A connection to Redis, and the commands and scripts that run over it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Script, Value, cmd};
use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::share::SHARE;
use windlass_engine::time::Timestamp;

use super::message::{self, JobMessage, PoppedJob};
use super::update::HEARTBEAT_MS;
use super::{RedisError, RedisUpdate};

/// Delayed jobs and dead letters of a queue that are shown.
pub const SHOWN_MAX: usize = 1_000;
/// The lease of the server that fills Redis. If a fill takes longer, two servers may fill.
const FILL_LEASE_MS: u64 = 5_000;
/// The keys of a queue, and their types.
const KEYS: [(&str, &str); 5] =
    [("ready", "list"), ("delayed", "zset"), ("dlq", "list"), ("more", "hash"), ("asked", "string")];

static SCRIPTS: LazyLock<RedisScripts> = LazyLock::new(|| RedisScripts {
    insert: script(include_str!("insert.lua")),
    pop: script(include_str!("pop.lua")),
    fill: script(include_str!("fill.lua")),
});

struct RedisScripts {
    insert: Script,
    pop: Script,
    fill: Script,
}

fn script(text: &str) -> Script {
    Script::new(&[include_str!("prelude.lua"), text].concat())
}

/// A connection. After an error it must be dropped: the outcome of the failed command is unknown.
#[derive(Clone)]
pub struct RedisConnection {
    connection: MultiplexedConnection,
    prefix: Arc<str>,
}

/// Queues whose windows must be filled from the store.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WindowNeeds {
    /// The window is short, and the store has more.
    pub short: BTreeSet<String>,
    /// Jobs of runs of several classes wait together: a fill applies their shares.
    pub mixed: BTreeSet<String>,
}

/// The result of a pop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PoppedJobs {
    /// The jobs in order.
    pub jobs: Vec<PoppedJob>,
    /// Elements that other programs wrote.
    pub n_invalid: usize,
    /// Queues with short windows.
    pub short: Vec<String>,
    /// Whether Redis lost its contents.
    pub is_lost: bool,
}

/// The numbers of jobs that can be popped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadyCounts {
    /// For each queue, the number of jobs; `None` if only the store has some.
    pub ready: Vec<Option<usize>>,
    /// Whether Redis lost its contents.
    pub is_lost: bool,
}

/// The window of a queue before the store is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadyWindow {
    skipped: String,
    jobs: Vec<WindowJob>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct WindowJob {
    run_id: String,
    job: JobId,
    priority: i32,
    message: JobMessage,
}

impl ReadyWindow {
    /// The priorities of its jobs, in order.
    pub fn priorities(&self) -> impl Iterator<Item = i32> {
        self.jobs.iter().map(|one| one.priority)
    }

    /// Its messages, by job.
    pub fn messages(&self) -> HashMap<JobId, JobMessage> {
        self.jobs.iter().map(|one| (one.job, one.message.clone())).collect()
    }
}

/// One command of a batch, and the queue that it is about.
struct QueueCommand<'u> {
    queue: &'u str,
    command: Cmd,
    is_insert: bool,
}

impl RedisConnection {
    pub(super) fn new(connection: MultiplexedConnection, prefix: Arc<str>) -> Self {
        RedisConnection { connection, prefix }
    }

    /// Applies updates in order.
    pub async fn apply(&self, updates: &[RedisUpdate]) -> Result<WindowNeeds, RedisError> {
        let mut needs = WindowNeeds::default();
        let wrong = self.apply_once(updates, &mut needs).await?;
        if wrong.is_empty() {
            return Ok(needs);
        }
        for queue in &wrong {
            self.repair(queue).await?;
        }
        let is_wrong = |update: &&RedisUpdate| update.queue().is_some_and(|queue| wrong.contains(queue));
        let again: Vec<RedisUpdate> = updates.iter().filter(is_wrong).cloned().collect();
        self.apply_once(&again, &mut needs).await?;
        // The deleted keys may have had more.
        needs.short.extend(wrong);
        Ok(needs)
    }

    /// The same, except for queues that have keys of another type: these are returned.
    async fn apply_once(
        &self,
        updates: &[RedisUpdate],
        needs: &mut WindowNeeds,
    ) -> Result<BTreeSet<String>, RedisError> {
        let mut wrong = BTreeSet::new();
        let commands = self.commands(updates);
        let answers = self.send(commands.iter().map(|one| &one.command)).await?;
        for (one, answer) in commands.iter().zip(answers) {
            match answer {
                Err(error) if error.is_wrong_type() => {
                    wrong.insert(one.queue.to_owned());
                }
                Err(error) => return Err(error),
                Ok(answer) if one.is_insert => needs.add(one.queue, &answer),
                Ok(_) => {}
            }
        }
        self.remove_revived(updates, &mut wrong).await?;
        Ok(wrong)
    }

    fn commands<'u>(&self, updates: &'u [RedisUpdate]) -> Vec<QueueCommand<'u>> {
        let mut commands: Vec<QueueCommand<'u>> = Vec::with_capacity(updates.len() * 2);
        // Queues whose jobs other claims than pops take: the insertion of no job tells whether the window is short.
        let mut drained = BTreeSet::new();
        let mut at = 0;
        while let Some(update) = updates.get(at) {
            at += 1;
            if let RedisUpdate::Held { message, was_ready: true, .. } = update {
                drained.insert(message.queue.as_str());
            }
            let RedisUpdate::Ready { message, .. } = update else {
                self.write(update, &mut commands);
                continue;
            };
            // Jobs that become ready together are inserted together.
            let rest = updates[at..].iter().take_while(
                |next| matches!(next, RedisUpdate::Ready { message: next, .. } if next.queue == message.queue),
            );
            let batch = &updates[at - 1..at + rest.count()];
            at += batch.len() - 1;
            batch.iter().for_each(|update| self.write(update, &mut commands));
            commands.push(self.insert(&message.queue, batch));
        }
        commands.extend(drained.into_iter().map(|queue| self.insert(queue, &[])));
        commands
    }

    fn insert<'u>(&self, queue: &'u str, batch: &[RedisUpdate]) -> QueueCommand<'u> {
        let is_run = batch.iter().any(|update| matches!(update, RedisUpdate::Ready { is_run: true, .. }));
        let mut command = cmd("EVALSHA");
        command.arg(SCRIPTS.insert.get_hash()).arg(0).arg(&*self.prefix).arg(queue).arg(u8::from(is_run));
        for update in batch {
            if let RedisUpdate::Ready { message, .. } = update {
                command.arg(&message.text);
            }
        }
        QueueCommand { queue, command, is_insert: true }
    }

    /// The commands of one update; the job of `Ready` is inserted elsewhere.
    fn write<'u>(&self, update: &'u RedisUpdate, commands: &mut Vec<QueueCommand<'u>>) {
        let mut add = |queue: &'u str, command: Cmd| {
            commands.push(QueueCommand { queue, command, is_insert: false });
        };
        let key = |message: &JobMessage, what: &str| self.queue_key(&message.queue, what);
        match update {
            RedisUpdate::Ready { ended: Some(lease), message, .. }
            | RedisUpdate::Delayed { ended: Some(lease), message, .. }
            | RedisUpdate::Ended { ended: Some(lease), message, .. }
            | RedisUpdate::Dead { ended: Some(lease), message } => {
                add(&message.queue, cmd("DEL").arg(self.lease_key(*lease)).take());
            }
            RedisUpdate::Ready { .. }
            | RedisUpdate::Delayed { .. }
            | RedisUpdate::Ended { .. }
            | RedisUpdate::Dead { .. }
            | RedisUpdate::Held { .. }
            | RedisUpdate::Back(_)
            | RedisUpdate::Discarded { .. }
            | RedisUpdate::Heartbeat { .. } => {}
        }
        match update {
            RedisUpdate::Ready { message, was_delayed: true, .. }
            | RedisUpdate::Held { message, was_delayed: true, .. }
            | RedisUpdate::Ended { message, .. } => {
                add(&message.queue, cmd("ZREM").arg(key(message, "delayed")).arg(&message.text).take());
            }
            _ => {}
        }
        match update {
            RedisUpdate::Held { message, was_ready: true, .. }
            | RedisUpdate::Ended { message, was_ready: true, .. } => {
                add(&message.queue, cmd("LREM").arg(key(message, "ready")).arg(1).arg(&message.text).take());
            }
            _ => {}
        }
        match update {
            RedisUpdate::Held { message, attempt, worker, ms, .. } => {
                let lease = self.lease_key(*attempt);
                add(&message.queue, cmd("SET").arg(lease).arg(worker).arg("PX").arg(*ms).take());
            }
            RedisUpdate::Back(message) => {
                add(&message.queue, cmd("LPUSH").arg(key(message, "ready")).arg(&message.text).take());
                let notice = format!("1:{}", message.queue);
                add(&message.queue, cmd("PUBLISH").arg(self.key("windlass:ready")).arg(notice).take());
            }
            RedisUpdate::Delayed { message, due, .. } => {
                let set = key(message, "delayed");
                add(&message.queue, cmd("ZADD").arg(&set).arg(score(*due)).arg(&message.text).take());
                add(&message.queue, cmd("ZREMRANGEBYRANK").arg(set).arg(SHOWN_MAX).arg(-1).take());
            }
            RedisUpdate::Dead { message, .. } => {
                let list = key(message, "dlq");
                add(&message.queue, cmd("RPUSH").arg(&list).arg(&message.text).take());
                add(&message.queue, cmd("LTRIM").arg(list).arg(last(SHOWN_MAX)).arg(-1).take());
            }
            RedisUpdate::Heartbeat { worker, at } => {
                let key = self.key(&format!("worker:{worker}:heartbeat"));
                add("", cmd("SET").arg(key).arg(at.0).arg("PX").arg(HEARTBEAT_MS).take());
            }
            RedisUpdate::Ready { .. } | RedisUpdate::Ended { .. } | RedisUpdate::Discarded { .. } => {}
        }
    }

    /// Removes the messages of jobs that are dead letters no more. These have other contents than the jobs now.
    async fn remove_revived(
        &self,
        updates: &[RedisUpdate],
        wrong: &mut BTreeSet<String>,
    ) -> Result<(), RedisError> {
        let (mut revived, mut dead) = (BTreeMap::<&str, HashSet<JobId>>::new(), HashSet::new());
        for update in updates {
            match update {
                RedisUpdate::Ready { message, revived: Some(job), .. }
                | RedisUpdate::Delayed { message, revived: Some(job), .. } => {
                    revived.entry(&message.queue).or_default().insert(*job);
                }
                RedisUpdate::Discarded { queue, job } => {
                    revived.entry(queue).or_default().insert(*job);
                }
                RedisUpdate::Dead { message, .. } => {
                    dead.insert(message.text.as_bytes());
                }
                _ => {}
            }
        }
        for (queue, jobs) in revived {
            let key = self.queue_key(queue, "dlq");
            let shown: Vec<Vec<u8>> = match self.ask(cmd("LRANGE").arg(&key).arg(0).arg(-1)).await {
                Err(error) if error.is_wrong_type() => {
                    wrong.insert(queue.to_owned());
                    continue;
                }
                answer => answer?,
            };
            let is_gone = |text: &&Vec<u8>| {
                let ids = message::read(text).filter(|_| !dead.contains(text.as_slice()));
                ids.is_some_and(|ids| jobs.contains(&JobId::new(ids.task_id)))
            };
            let removals: Vec<Cmd> = shown
                .iter()
                .filter(is_gone)
                .map(|text| cmd("LREM").arg(&key).arg(0).arg(text).take())
                .collect();
            self.send(removals.iter()).await?;
        }
        Ok(())
    }

    /// Removes at most `max` jobs of these queues from their lists.
    pub async fn pop(&self, queues: &[String], max: usize) -> Result<PoppedJobs, RedisError> {
        let given = [max.to_string(), SHARE.to_string()];
        let given: Vec<&str> =
            given.iter().map(String::as_str).chain(queues.iter().map(String::as_str)).collect();
        let (n_epochs, found, short): (i64, Vec<Vec<u8>>, Vec<String>) =
            self.invoke(&SCRIPTS.pop, queues, &given).await?;
        let popped = |one: &[Vec<u8>]| {
            let [queue, text] = one else { return None };
            let ids = message::read(text)?;
            let (queue, text) =
                (String::from_utf8(queue.clone()).ok()?, String::from_utf8(text.clone()).ok()?);
            Some(PoppedJob { job: JobId::new(ids.task_id), message: JobMessage { queue, text } })
        };
        let jobs: Vec<PoppedJob> = found.chunks_exact(2).filter_map(popped).collect();
        Ok(PoppedJobs { n_invalid: found.len() / 2 - jobs.len(), jobs, short, is_lost: n_epochs == 0 })
    }

    /// Counts ready jobs without removing them.
    pub async fn count_ready(&self, queues: &[String]) -> Result<ReadyCounts, RedisError> {
        let epoch = cmd("EXISTS").arg(self.key("windlass:epoch")).take();
        let of_queue = |queue: &String| {
            let count = cmd("LLEN").arg(self.queue_key(queue, "ready")).take();
            [count, cmd("EXISTS").arg(self.queue_key(queue, "more")).take()]
        };
        let commands: Vec<Cmd> = [epoch].into_iter().chain(queues.iter().flat_map(of_queue)).collect();
        let answers = self.send(commands.iter()).await?;
        // A key of another type holds no jobs; a fill repairs it.
        let numbers: Vec<usize> = answers.into_iter().map(|answer| number(answer).unwrap_or(0)).collect();
        let ready =
            numbers[1..].chunks_exact(2).map(|of| if of[0] == 0 && of[1] > 0 { None } else { Some(of[0]) });
        Ok(ReadyCounts { ready: ready.collect(), is_lost: numbers[0] == 0 })
    }

    /// The window of a queue, for a fill: to be read before the store.
    pub async fn window(&self, queue: &str) -> Result<ReadyWindow, RedisError> {
        let skipped = cmd("HGET").arg(self.queue_key(queue, "more")).arg("skipped").take();
        let list = cmd("LRANGE").arg(self.queue_key(queue, "ready")).arg(0).arg(-1).take();
        let mut answers = self.send([&skipped, &list].into_iter()).await?.into_iter();
        let mut next = || answers.next().and_then(Result::ok).unwrap_or(Value::Nil);
        let skipped: Option<String> = FromRedisValue::from_redis_value(next()).unwrap_or_default();
        let messages: Vec<Vec<u8>> = FromRedisValue::from_redis_value(next()).unwrap_or_default();
        let job = |text: &Vec<u8>| {
            // The scripts find ids by this beginning.
            let ids = message::read(text).filter(|_| text.starts_with(br#"{"task_run_id":""#))?;
            let message = JobMessage { queue: queue.to_owned(), text: String::from_utf8(text.clone()).ok()? };
            let (job, priority) = (JobId::new(ids.task_id), i32::try_from(ids.priority).ok()?);
            Some(WindowJob { run_id: ids.task_run_id, job, priority, message })
        };
        let jobs = messages.iter().filter_map(job).collect();
        Ok(ReadyWindow { skipped: skipped.unwrap_or_else(|| "0".to_owned()), jobs })
    }

    /// Replaces the window of a queue by the first jobs that the store had after `window` was read; `below` is the
    /// priority from which downwards it has more. Returns whether the window is short although the store has more by now.
    pub async fn fill(
        &self,
        queue: &str,
        window: &ReadyWindow,
        below: Option<i32>,
        messages: &[JobMessage],
    ) -> Result<bool, RedisError> {
        let (below, n) =
            (below.map(|below| below.to_string()).unwrap_or_default(), window.jobs.len().to_string());
        let given = [queue, &window.skipped, &below, &n].into_iter();
        let known = window.jobs.iter().map(|one| one.run_id.as_str());
        let given: Vec<&str> =
            given.chain(known).chain(messages.iter().map(|message| &*message.text)).collect();
        let is_short: i64 = self.invoke(&SCRIPTS.fill, &[queue.to_owned()], &given).await?;
        Ok(is_short != 0)
    }

    /// Removes jobs from their lists that a fill may have added although they are not ready any more.
    pub async fn remove(&self, messages: &[JobMessage]) -> Result<(), RedisError> {
        let remove = |message: &JobMessage| {
            cmd("LREM").arg(self.queue_key(&message.queue, "ready")).arg(0).arg(&message.text).take()
        };
        let commands: Vec<Cmd> = messages.iter().map(remove).collect();
        for answer in self.send(commands.iter()).await? {
            answer?;
        }
        Ok(())
    }

    /// Replaces the delayed jobs that are shown of a queue: the nearest ones.
    pub async fn show_delayed(
        &self,
        queue: &str,
        jobs: &[(Timestamp, JobMessage)],
    ) -> Result<(), RedisError> {
        let key = self.queue_key(queue, "delayed");
        let add = |(due, message): &(Timestamp, JobMessage)| {
            cmd("ZADD").arg(&key).arg(score(*due)).arg(&message.text).take()
        };
        self.replace(&key, jobs.iter().map(add).collect()).await
    }

    /// Replaces the dead letters that are shown of a queue: the newest ones, oldest first.
    pub async fn show_dead(&self, queue: &str, jobs: &[JobMessage]) -> Result<(), RedisError> {
        let key = self.queue_key(queue, "dlq");
        let add = |message: &JobMessage| cmd("RPUSH").arg(&key).arg(&message.text).take();
        self.replace(&key, jobs.iter().map(add).collect()).await
    }

    async fn replace(&self, key: &str, additions: Vec<Cmd>) -> Result<(), RedisError> {
        let mut pipe = redis::pipe();
        pipe.atomic().cmd("DEL").arg(key).ignore();
        additions.into_iter().for_each(|addition| {
            pipe.add_command(addition).ignore();
        });
        pipe.query_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))
    }

    /// The numbers of delayed jobs and of dead letters that are shown of each queue.
    pub async fn count_shown(&self, queues: &[String]) -> Result<Vec<[usize; 2]>, RedisError> {
        let of_queue = |queue: &String| {
            let delayed = cmd("ZCARD").arg(self.queue_key(queue, "delayed")).take();
            [delayed, cmd("LLEN").arg(self.queue_key(queue, "dlq")).take()]
        };
        let commands: Vec<Cmd> = queues.iter().flat_map(of_queue).collect();
        let answers = self.send(commands.iter()).await?;
        let numbers: Vec<usize> = answers.into_iter().map(|answer| number(answer).unwrap_or(0)).collect();
        Ok(numbers.chunks_exact(2).map(|of| [of[0], of[1]]).collect())
    }

    /// Takes the lease for filling Redis; `false` if another server has it.
    pub async fn begin_fill(&self, by: &str) -> Result<bool, RedisError> {
        let mut set = cmd("SET");
        set.arg(self.key("windlass:filling")).arg(by).arg("NX").arg("PX").arg(FILL_LEASE_MS);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Takes the turn for the periodic check for lost jobs; `false` if another server has taken it.
    pub async fn begin_sweep(&self, every: Duration) -> Result<bool, RedisError> {
        // A little less than the interval, so that a punctual server does not miss its turn.
        let ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX) / 10 * 9;
        let mut set = cmd("SET");
        set.arg(self.key("windlass:sweep")).arg(1).arg("NX").arg("PX").arg(ms);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Releases the lease. With a time, Redis has all jobs that the store had then.
    pub async fn end_fill(&self, since: Option<Timestamp>) -> Result<(), RedisError> {
        if let Some(since) = since {
            self.ask::<()>(cmd("SET").arg(self.key("windlass:epoch")).arg(since.0)).await?;
        }
        self.ask(cmd("DEL").arg(self.key("windlass:filling"))).await
    }

    /// The time up to which Redis has all jobs; `None` if it lost its contents.
    pub async fn filled_at(&self) -> Result<Option<Timestamp>, RedisError> {
        let answer =
            self.send([cmd("GET").arg(self.key("windlass:epoch"))].into_iter().map(|one| &*one)).await?;
        let answer = answer.into_iter().next().and_then(Result::ok).unwrap_or(Value::Nil);
        let text: Option<String> = FromRedisValue::from_redis_value(answer).unwrap_or_default();
        Ok(text.and_then(|text| text.parse().ok()).map(Timestamp))
    }

    pub(super) async fn subscribe(&self) -> Result<(), RedisError> {
        let channel = self.key("windlass:ready");
        self.connection.clone().subscribe(channel).await.map_err(|error| RedisError::of(&error))
    }

    /// Checks that writes are accepted: a replica, and a server without memory, refuse them.
    pub(super) async fn check_rights(&self) -> Result<(), RedisError> {
        let hello = self.key("windlass:hello");
        self.ask::<()>(cmd("SET").arg(&hello).arg(1).arg("PX").arg(1_000)).await?;
        self.ask::<()>(cmd("DEL").arg(&hello)).await?;
        SCRIPTS
            .insert
            .load_async(&mut self.connection.clone())
            .await
            .map_err(|error| RedisError::of(&error))?;
        Ok(())
    }

    fn key(&self, name: &str) -> String {
        [&*self.prefix, name].concat()
    }

    fn queue_key(&self, queue: &str, what: &str) -> String {
        [&*self.prefix, "queue:", queue, ":", what].concat()
    }

    fn lease_key(&self, attempt: Uuid) -> String {
        self.key(&format!("lease:{attempt}"))
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))
    }

    /// Sends commands together; each has an answer of its own.
    async fn send<'c>(
        &self,
        commands: impl Iterator<Item = &'c Cmd>,
    ) -> Result<Vec<Result<Value, RedisError>>, RedisError> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        commands.for_each(|command| {
            pipe.add_command(command.clone());
        });
        if pipe.is_empty() {
            return Ok(Vec::new());
        }
        let answers: Vec<redis::RedisResult<Value>> =
            pipe.query_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))?;
        Ok(answers.into_iter().map(|answer| answer.map_err(|error| RedisError::of(&error))).collect())
    }

    /// Runs a script. Keys of another type are deleted, and it runs once more.
    async fn invoke<T: FromRedisValue>(
        &self,
        script: &Script,
        queues: &[String],
        given: &[&str],
    ) -> Result<T, RedisError> {
        match self.invoke_once(script, given).await {
            Err(error) if error.is_wrong_type() => {
                for queue in queues {
                    self.repair(queue).await?;
                }
                self.invoke_once(script, given).await
            }
            answer => answer,
        }
    }

    async fn invoke_once<T: FromRedisValue>(&self, script: &Script, given: &[&str]) -> Result<T, RedisError> {
        let mut call = script.prepare_invoke();
        call.arg(&*self.prefix);
        given.iter().for_each(|word| {
            call.arg(*word);
        });
        call.invoke_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))
    }

    /// Deletes the keys of a queue that have another type: the store has the truth.
    async fn repair(&self, queue: &str) -> Result<(), RedisError> {
        for (name, expected) in KEYS {
            let key = self.queue_key(queue, name);
            let found: String = self.ask(cmd("TYPE").arg(&key)).await?;
            if found != expected {
                self.ask::<()>(cmd("DEL").arg(&key)).await?;
            }
        }
        Ok(())
    }
}

impl WindowNeeds {
    fn add(&mut self, queue: &str, answer: &Value) {
        let Value::Array(flags) = answer else { return };
        let is_set = |at: usize| matches!(flags.get(at), Some(Value::Int(1)));
        if is_set(0) {
            self.short.insert(queue.to_owned());
        }
        if is_set(1) {
            self.mixed.insert(queue.to_owned());
        }
    }
}

/// Seconds since 1970, with a fraction only if there is one.
fn score(due: Timestamp) -> String {
    let (seconds, ms) = (due.0.max(0) / 1_000, due.0.max(0) % 1_000);
    if ms == 0 { seconds.to_string() } else { format!("{seconds}.{ms:03}") }
}

/// The index of the first of the last `n` elements of a list.
fn last(n: usize) -> String {
    format!("-{n}")
}

fn number(answer: Result<Value, RedisError>) -> Option<usize> {
    FromRedisValue::from_redis_value(answer.ok()?).ok()
}
