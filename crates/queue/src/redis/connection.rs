//! A connection to Redis, and the scripts that run over it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script, ToRedisArgs};
use windlass_engine::share::SHARE;
use windlass_engine::time::Timestamp;

use super::{ReadyEntry, RedisError, RedisUpdate};

/// Ids in one list, about 10 MB; further jobs stay in the store until there is room.
const LIST_MAX: usize = 100_000;
/// The lease of the server that fills Redis. If a fill takes longer, two servers may fill, and some ids are there
/// twice.
const FILL_LEASE_MS: u64 = 5_000;
/// Dispatched jobs between two reads of lower classes from the store.
const CLASS_READ_INTERVAL: u32 = crate::run_jobs::CLASS_READ_INTERVAL;

static SCRIPTS: LazyLock<RedisScripts> = LazyLock::new(|| RedisScripts {
    update: script(&[include_str!("update.lua")]),
    pop: script(&[
        // Wrapped in a function so that a pop of plain jobs does not create its closures.
        "local function turns(...)\n",
        include_str!("share.lua"),
        "end\n",
        include_str!("pop.lua"),
    ]),
    fill: script(&[include_str!("fill.lua")]),
    classes: script(&[include_str!("classes.lua")]),
    look: script(&[include_str!("look.lua")]),
});

/// The answer of a script; not all of it must be text.
type ScriptWords = Vec<Vec<u8>>;

struct RedisScripts {
    update: Script,
    pop: Script,
    fill: Script,
    classes: Script,
    look: Script,
}

fn script(parts: &[&str]) -> Script {
    Script::new(&[&[include_str!("prelude.lua")], parts].concat().concat())
}

/// A connection. After an error it must be dropped: the outcome of the failed command is unknown.
#[derive(Clone)]
pub struct RedisConnection {
    connection: MultiplexedConnection,
    prefix: Arc<str>,
}

/// The result of a pop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PoppedJobs {
    /// The jobs in order; no other server gets them.
    pub entries: Vec<ReadyEntry>,
    /// Entries that were not job ids.
    pub n_invalid: usize,
    /// Queues of which the store has more jobs than Redis.
    pub incomplete: Vec<String>,
    /// Queues of which the store may have more jobs of lower classes of runs, which get a fair share.
    pub incomplete_classes: Vec<String>,
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

impl RedisConnection {
    pub(super) fn new(connection: MultiplexedConnection, prefix: Arc<str>) -> Self {
        RedisConnection { connection, prefix }
    }

    /// Applies updates in order.
    pub async fn apply(&self, updates: &[RedisUpdate]) -> Result<(), RedisError> {
        let mut words = Vec::with_capacity(updates.len() * 7);
        updates.iter().for_each(|one| one.write(&mut words));
        self.invoke::<i64>(&SCRIPTS.update, &[&LIST_MAX.to_string()], &words).await.map(drop)
    }

    /// Removes at most `max` jobs of these queues from their lists.
    pub async fn pop(&self, queues: &[String], max: usize, now: Timestamp) -> Result<PoppedJobs, RedisError> {
        let given = [LIST_MAX.to_string(), max.to_string(), now.0.to_string()];
        let given: Vec<String> =
            given.into_iter().chain([SHARE.to_string(), CLASS_READ_INTERVAL.to_string()]).collect();
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let (n_epochs, found, incomplete, incomplete_classes): (i64, ScriptWords, ScriptWords, ScriptWords) =
            self.invoke(&SCRIPTS.pop, &given, queues).await?;
        let n = found.len() / 3;
        let entries: Vec<ReadyEntry> = found.chunks_exact(3).filter_map(ReadyEntry::read).collect();
        let names = |names: ScriptWords| -> Vec<String> {
            names.into_iter().filter_map(|queue| String::from_utf8(queue).ok()).collect()
        };
        let (incomplete, incomplete_classes) = (names(incomplete), names(incomplete_classes));
        Ok(PoppedJobs {
            n_invalid: n - entries.len(),
            entries,
            incomplete,
            incomplete_classes,
            is_lost: n_epochs == 0,
        })
    }

    /// Counts ready jobs without removing them.
    pub async fn count_ready(&self, queues: &[String], now: Timestamp) -> Result<ReadyCounts, RedisError> {
        let answer: Vec<i64> = self.invoke(&SCRIPTS.look, &[&now.0.to_string()], queues).await?;
        let mut answer = answer.into_iter();
        let is_lost = answer.next() == Some(0);
        Ok(ReadyCounts { ready: answer.map(|n| usize::try_from(n).ok()).collect(), is_lost })
    }

    /// Appends jobs to the lists of a queue, in order. `is_first` clears the lists before; `more` is the priority from
    /// which downwards the store has more jobs.
    pub async fn fill(
        &self,
        queue: &str,
        entries: &[ReadyEntry],
        is_first: bool,
        more: Option<i32>,
    ) -> Result<(), RedisError> {
        let first = if is_first { "1" } else { "" };
        let more = more.map(|priority| priority.to_string()).unwrap_or_default();
        let words = entries.iter().flat_map(|entry| [entry.priority.to_string(), entry.encoded_id()]);
        let words: Vec<String> = words.collect();
        let given = [&LIST_MAX.to_string(), queue, first, &more];
        self.invoke::<i64>(&SCRIPTS.fill, &given, &words).await.map(drop)
    }

    /// Sets the jobs of a lower class of runs, for a queue of which the store has more than the lists.
    pub async fn fill_class(
        &self,
        queue: &str,
        priority: i32,
        entries: &[ReadyEntry],
    ) -> Result<(), RedisError> {
        let given = [queue, &priority.to_string(), &CLASS_READ_INTERVAL.to_string()];
        let words: Vec<String> = entries.iter().map(ReadyEntry::encoded_id).collect();
        self.invoke::<i64>(&SCRIPTS.classes, &given, &words).await.map(drop)
    }

    /// Takes the lease for filling Redis; `false` if another server has it.
    pub async fn begin_fill(&self, by: &str) -> Result<bool, RedisError> {
        let mut set = redis::cmd("SET");
        set.arg(self.key("windlass:filling")).arg(by).arg("NX").arg("PX").arg(FILL_LEASE_MS);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Takes the turn for the periodic check for lost jobs; `false` if another server has taken it.
    pub async fn begin_sweep(&self, every: Duration) -> Result<bool, RedisError> {
        // A little less than the interval, so that a punctual server does not miss its turn.
        let ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX) / 10 * 9;
        let mut set = redis::cmd("SET");
        set.arg(self.key("windlass:sweep")).arg(1).arg("NX").arg("PX").arg(ms);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Releases the lease. With a time, Redis has all jobs that the store had then.
    pub async fn end_fill(&self, since: Option<Timestamp>) -> Result<(), RedisError> {
        if let Some(since) = since {
            let mut set = redis::cmd("SET");
            set.arg(self.key("windlass:epoch")).arg(since.0);
            self.ask::<()>(&set).await?;
        }
        self.ask(redis::cmd("DEL").arg(self.key("windlass:filling"))).await
    }

    /// The time up to which Redis has all jobs; `None` if it lost its contents.
    pub async fn filled_at(&self) -> Result<Option<Timestamp>, RedisError> {
        let answer: Option<Vec<u8>> = self.ask(redis::cmd("GET").arg(self.key("windlass:epoch"))).await?;
        let answer = answer.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
        Ok(answer.map(Timestamp))
    }

    pub(super) async fn subscribe(&self) -> Result<(), RedisError> {
        let channel = self.key("windlass:ready");
        self.connection.clone().subscribe(channel).await.map_err(|error| RedisError::of(&error))
    }

    /// Checks that writes are accepted: a replica, and a server without memory, refuse them.
    pub(super) async fn check_rights(&self) -> Result<(), RedisError> {
        let hello = self.key("windlass:hello");
        let mut set = redis::cmd("SET");
        set.arg(&hello).arg(1).arg("PX").arg(1_000);
        self.ask::<()>(&set).await?;
        self.ask::<()>(redis::cmd("DEL").arg(&hello)).await?;
        self.apply(&[]).await
    }

    fn key(&self, name: &str) -> String {
        [&*self.prefix, name].concat()
    }

    async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))
    }

    async fn invoke<T: FromRedisValue>(
        &self,
        script: &Script,
        given: &[&str],
        rest: &[impl ToRedisArgs],
    ) -> Result<T, RedisError> {
        let mut call = script.prepare_invoke();
        call.arg(&*self.prefix);
        given.iter().for_each(|word| {
            call.arg(*word);
        });
        rest.iter().for_each(|word| {
            call.arg(word);
        });
        call.invoke_async(&mut self.connection.clone()).await.map_err(|error| RedisError::of(&error))
    }
}
