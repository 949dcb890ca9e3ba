//! A connection to Redis, and the scripts that move jobs over it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script, ToRedisArgs};
use windlass_engine::share::SHARE;
use windlass_engine::time::Timestamp;

use super::{Move, RedisError, Spot};

/// Ids that one list holds at most, 10 MB or so: what is more stays in the store until there is room.
const LIST_MAX: usize = 100_000;
/// For how long whoever fills has it to itself: whoever takes longer shares it, and some ids are there twice.
const FILLING_MS: u64 = 5_000;
/// Hand-outs before the store is asked again whether it has jobs of lower classes that no list has.
const ASK_EVERY: u32 = crate::runs::ASK_EVERY;

static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    moves: script(&[include_str!("moves.lua")]),
    pop: script(&[
        // A function, as a file of Lua is: a pop of plain jobs does not make what is in it.
        "local function turns(...)\n",
        include_str!("share.lua"),
        "end\n",
        include_str!("pop.lua"),
    ]),
    fill: script(&[include_str!("fill.lua")]),
    classes: script(&[include_str!("classes.lua")]),
    look: script(&[include_str!("look.lua")]),
});

/// What a script answers: not all of it need be text.
type Words = Vec<Vec<u8>>;

struct Scripts {
    moves: Script,
    pop: Script,
    fill: Script,
    classes: Script,
    look: Script,
}

fn script(parts: &[&str]) -> Script {
    Script::new(&[&[include_str!("prelude.lua")], parts].concat().concat())
}

/// A connection. Whatever goes wrong with it, it is of no more use: what was asked may have been done or not.
#[derive(Clone)]
pub struct Link {
    connection: MultiplexedConnection,
    prefix: Arc<str>,
}

/// What was popped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Popped {
    /// In order, and nobody else's from now on.
    pub spots: Vec<Spot>,
    /// How many were no jobs at all.
    pub n_nonsense: usize,
    /// Queues of which the store has more than Redis.
    pub thin: Vec<String>,
    /// Of these it may have more jobs of lower classes of runs, which get turns although there is more above them.
    pub low: Vec<String>,
    /// Redis has lost what it was given.
    pub is_lost: bool,
}

/// What there is for whoever pops now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// For each queue that was asked for, how many jobs; `None` = only the store has some.
    pub ready: Vec<Option<usize>>,
    /// Redis has lost what it was given.
    pub is_lost: bool,
}

impl Link {
    pub(super) fn new(connection: MultiplexedConnection, prefix: Arc<str>) -> Self {
        Link { connection, prefix }
    }

    /// Takes jobs to where they are by now, in order.
    pub async fn apply(&self, moves: &[Move]) -> Result<(), RedisError> {
        let mut words = Vec::with_capacity(moves.len() * 7);
        moves.iter().for_each(|one| one.write(&mut words));
        self.invoke::<i64>(&SCRIPTS.moves, &[&LIST_MAX.to_string()], &words).await.map(drop)
    }

    /// Takes at most so many jobs of these queues out of their lists.
    pub async fn pop(&self, queues: &[String], max: usize, now: Timestamp) -> Result<Popped, RedisError> {
        let given = [LIST_MAX.to_string(), max.to_string(), now.0.to_string()];
        let given: Vec<String> =
            given.into_iter().chain([SHARE.to_string(), ASK_EVERY.to_string()]).collect();
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let (n_epochs, found, thin, low): (i64, Words, Words, Words) =
            self.invoke(&SCRIPTS.pop, &given, queues).await?;
        let n = found.len() / 3;
        let spots: Vec<Spot> = found.chunks_exact(3).filter_map(Spot::read).collect();
        let names = |names: Words| -> Vec<String> {
            names.into_iter().filter_map(|queue| String::from_utf8(queue).ok()).collect()
        };
        let (thin, low) = (names(thin), names(low));
        Ok(Popped { n_nonsense: n - spots.len(), spots, thin, low, is_lost: n_epochs == 0 })
    }

    /// Says how much there is, without taking anything.
    pub async fn look(&self, queues: &[String], now: Timestamp) -> Result<Look, RedisError> {
        let told: Vec<i64> = self.invoke(&SCRIPTS.look, &[&now.0.to_string()], queues).await?;
        let mut told = told.into_iter();
        let is_lost = told.next() == Some(0);
        Ok(Look { ready: told.map(|n| usize::try_from(n).ok()).collect(), is_lost })
    }

    /// Puts jobs of a queue into its lists, in order: `first` clears them before, and `more` is the priority from which
    /// on downwards the store has others.
    pub async fn fill(
        &self,
        queue: &str,
        spots: &[Spot],
        is_first: bool,
        more: Option<i32>,
    ) -> Result<(), RedisError> {
        let first = if is_first { "1" } else { "" };
        let more = more.map(|priority| priority.to_string()).unwrap_or_default();
        let words = spots.iter().flat_map(|spot| [spot.priority.to_string(), spot.spelled()]);
        let words: Vec<String> = words.collect();
        let given = [&LIST_MAX.to_string(), queue, first, &more];
        self.invoke::<i64>(&SCRIPTS.fill, &given, &words).await.map(drop)
    }

    /// Gives a queue of which the store has more the first jobs of runs of a lower class, in order.
    pub async fn fill_class(&self, queue: &str, priority: i32, spots: &[Spot]) -> Result<(), RedisError> {
        let given = [queue, &priority.to_string(), &ASK_EVERY.to_string()];
        let words: Vec<String> = spots.iter().map(Spot::spelled).collect();
        self.invoke::<i64>(&SCRIPTS.classes, &given, &words).await.map(drop)
    }

    /// Begins to fill everything anew; `false` = somebody else does it just now.
    pub async fn begin_filling(&self, by: &str) -> Result<bool, RedisError> {
        let mut set = redis::cmd("SET");
        set.arg(self.key("windlass:filling")).arg(by).arg("NX").arg("PX").arg(FILLING_MS);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Begins to look for what got lost, once in so long; `false` = somebody else has.
    pub async fn begin_sweep(&self, every: Duration) -> Result<bool, RedisError> {
        // A little less, so that whoever comes on time is not late by one.
        let ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX) / 10 * 9;
        let mut set = redis::cmd("SET");
        set.arg(self.key("windlass:sweep")).arg(1).arg("NX").arg("PX").arg(ms);
        let answer: Option<String> = self.ask(&set).await?;
        Ok(answer.is_some())
    }

    /// Ends it. From now on Redis has everything that the store had at that time.
    pub async fn end_filling(&self, since: Option<Timestamp>) -> Result<(), RedisError> {
        if let Some(since) = since {
            let mut set = redis::cmd("SET");
            set.arg(self.key("windlass:epoch")).arg(since.0);
            self.ask::<()>(&set).await?;
        }
        self.ask(redis::cmd("DEL").arg(self.key("windlass:filling"))).await
    }

    /// As of when Redis has everything; `None` = it does not.
    pub async fn filled_at(&self) -> Result<Option<Timestamp>, RedisError> {
        let told: Option<Vec<u8>> = self.ask(redis::cmd("GET").arg(self.key("windlass:epoch"))).await?;
        let told = told.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
        Ok(told.map(Timestamp))
    }

    pub(super) async fn subscribe(&self) -> Result<(), RedisError> {
        let channel = self.key("windlass:ready");
        self.connection.clone().subscribe(channel).await.map_err(|error| RedisError::of(&error))
    }

    /// Whether it may write here: a replica, or one that is full, says no.
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
