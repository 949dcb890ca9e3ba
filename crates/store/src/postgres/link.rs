//! Connections: how they are made and used, and their time limits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket};
use uuid::Uuid;
use windlass_engine::project::Project;

use super::address::DatabaseAddress;
use super::column::{Cell, unescape};
use super::encryption::{DatabaseTls, EncryptedStream};
use super::trouble::{Trouble, fault, no_connection};
use crate::column::bound;
use crate::condition::{Access, BadRow, ConditionLog};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::table::KeyedTable;

/// A server that is there answers at once; one that is not should not be waited for.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a query waits for a connection when all are in use.
const WAIT: Duration = Duration::from_secs(5);
/// Bytes without an acknowledgement by then are lost: without this limit a cut connection is noticed after minutes.
const LINK: Duration = Duration::from_secs(5);
/// Longer than any statement may take, see `SESSION`: the database itself is silent.
const ANSWER: Duration = Duration::from_secs(40);

/// Both ends give up on one another at the same time; a transaction that was left alone holds its rows for no more than
/// ten seconds; no transaction waits for a row for longer than five.
const SESSION: &str = "SET statement_timeout = 30000; SET lock_timeout = 5000; \
     SET idle_in_transaction_session_timeout = 10000; SET tcp_user_timeout = 5000; SET tcp_keepalives_idle = 5; \
     SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
     SET default_transaction_isolation = 'read committed'; SET client_min_messages = 'warning'; SET timezone = 'UTC';";
// Statements that look at a few rows in many ways are estimated to cost enough to be compiled, which takes a hundred
// times as long as they do. Not every database has this.
const INTERPRETED: &str = "SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit';";
// The hot path looks rows up by their keys, some at a time. A statement is planned before there is much in its table,
// and kept: told nothing, the database would take to reading whole tables, and go on when they have grown; or plan the question for the next jobs anew each time, which takes longer than it does.
const BY_KEY: &str = "SELECT set_config(name, CASE name WHEN 'plan_cache_mode' THEN 'force_generic_plan' ELSE 'off' END, \
     false) FROM pg_settings WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'plan_cache_mode');";
// One that was set to wait for more than its own disk is not made to wait for less.
const STRICT: &str = "SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";
const FAST: &str = "SET synchronous_commit = off";

/// Purposes of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Purpose {
    /// Rows are looked up by their keys, and in the order of an index: by those who work.
    ByKey,
    Any,
}

/// One statement and its parameters.
pub(super) struct BoundStatement<'a> {
    pub(super) sql: &'static str,
    pub(super) cells: Vec<Cell<'a>>,
}

impl<'a> BoundStatement<'a> {
    pub(super) fn new(sql: &'static str, cells: Vec<Cell<'a>>) -> Self {
        BoundStatement { sql, cells }
    }

    /// Binds the project as the last parameter.
    pub(super) fn in_project(mut self, project: &'a Project) -> Self {
        self.cells.push(Box::new(project.as_str()));
        self
    }
}

/// A database with the options of every connection.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) config: Config,
    tls: DatabaseTls,
}

impl Connector {
    pub(super) fn new(address: DatabaseAddress) -> Result<Self, StoreError> {
        let tls = DatabaseTls::new(&address.encryption)?;
        Ok(Connector { config: configure(address.config), tls })
    }

    /// Makes one connection.
    pub(super) async fn connect(
        &self,
    ) -> Result<(Client, Connection<Socket, EncryptedStream<Socket>>), tokio_postgres::Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// Adds the options of every connection to those of the address.
fn configure(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(LINK);
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(2));
    config.keepalives_retries(3);
    if config.get_application_name().is_none() {
        config.application_name("windlass");
    }
    config
}

/// The settings of a connection before its use.
pub(super) async fn prepare(
    client: &Client,
    durability: Durability,
    purpose: Purpose,
) -> Result<(), tokio_postgres::Error> {
    let plans = match purpose {
        Purpose::ByKey => BY_KEY,
        Purpose::Any => "",
    };
    let level = match durability {
        Durability::Strict => STRICT,
        Durability::Fast => FAST,
    };
    client.batch_execute(&format!("{SESSION} {INTERPRETED} {plans} {level}")).await
}

/// Connections that are made as they are needed, so many at most.
pub(super) fn pool(
    connector: Connector,
    durability: Durability,
    purpose: Purpose,
    most: usize,
) -> Result<Pool, StoreError> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(connector.config, connector.tls, manager);
    let hook = Hook::async_fn(move |client, _| {
        Box::pin(async move { prepare(client, durability, purpose).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(most)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(CONNECT + CONNECT))
        .runtime(Runtime::Tokio1)
        .post_create(hook)
        .build()
        .map_err(|error| Trouble::new(error.to_string()).into())
}

/// A connection in use. If it is given back in the middle of a transaction, it is closed instead.
pub(super) struct Link {
    client: Option<Object>,
    is_busy: AtomicBool,
    /// Faults and bad rows that its reads and writes meet.
    condition: Arc<ConditionLog>,
}

impl Link {
    /// Takes one that is free.
    pub(super) async fn take(pool: &Pool) -> Result<Link, StoreError> {
        Link::take_noting(pool, &Arc::default()).await
    }

    /// Takes one whose reads and writes are noted there.
    pub(super) async fn take_noting(pool: &Pool, condition: &Arc<ConditionLog>) -> Result<Link, StoreError> {
        let client = pool.get().await.map_err(no_connection)?;
        Ok(Link { client: Some(client), is_busy: AtomicBool::new(false), condition: condition.clone() })
    }

    /// Notes a row that is left out.
    pub(super) fn set_aside(&self, table: &KeyedTable, key: String, reason: String) {
        self.condition.set_aside(BadRow { table: table.name, key, reason });
    }

    /// The value of the one row. A row that cannot be decoded is an error, and is set aside.
    pub(super) fn one<T>(
        &self,
        table: &KeyedTable,
        row: Option<&Row>,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(row) = row else { return Ok(None) };
        match self.decoded(table, std::slice::from_ref(row), read)?.pop() {
            Some(value) => Ok(Some(value)),
            None => {
                Err(StoreError::Corrupt(format!("{} of `{}` cannot be read", key_of(table, row), table.name)))
            }
        }
    }

    /// The values of rows, without those that cannot be decoded: they are set aside.
    pub(super) fn decoded<T>(
        &self,
        table: &KeyedTable,
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            match read(row) {
                Ok(value) => values.push(value),
                Err(StoreError::Corrupt(reason)) => {
                    self.set_aside(table, key_of(table, row), reason);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    /// The first rows of a query that can be decoded: `given` makes its parameters from the limit. Bad rows do not count
    /// in the limit, so that they hide none behind them.
    pub(super) async fn first_rows<'a, T>(
        &self,
        table: &KeyedTable,
        sql: &'static str,
        limit: usize,
        given: impl Fn(i64) -> Vec<Cell<'a>>,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut n_bad = 0;
        loop {
            let asked = limit.saturating_add(n_bad);
            let rows = self.ask(sql, &given(bound(asked))).await?;
            let values = self.decoded(table, &rows, &read)?;
            if values.len() >= limit || rows.len() < asked {
                return Ok(values);
            }
            n_bad = rows.len() - values.len();
        }
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("it is taken only when the link is dropped")
    }

    /// Sends a query, and reads its rows.
    pub(super) async fn ask(&self, sql: &'static str, cells: &[Cell<'_>]) -> Result<Vec<Row>, StoreError> {
        let client = self.client();
        self.in_time(Access::Read, async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, &values(cells)).await
        })
        .await
    }

    /// Asks for one row at most.
    pub(super) async fn ask_one(
        &self,
        sql: &'static str,
        cells: &[Cell<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.ask(sql, cells).await?.into_iter().next())
    }

    /// Does something; how many rows it was done to.
    pub(super) async fn execute(&self, sql: &'static str, cells: &[Cell<'_>]) -> Result<u64, StoreError> {
        let client = self.client();
        self.in_time(Access::Write, async {
            let statement = client.prepare_cached(sql).await?;
            client.execute(&statement, &values(cells)).await
        })
        .await
    }

    /// Asks with a text that was put together for this once; it is not kept.
    pub(super) async fn ask_once(
        &self,
        sql: &str,
        values: &[(Cell<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(cell, of)| (&**cell as &(dyn ToSql + Sync), of.clone())).collect();
        self.in_time(Access::Read, self.client().query_typed(sql, &values)).await
    }

    /// Sends everything at once, and reads the answers in order: the begin, the statements, the end.
    /// Without an end the link stays in the middle of something.
    pub(super) async fn pipeline(
        &self,
        begin: Option<&str>,
        asks: &[BoundStatement<'_>],
        end: Option<&str>,
    ) -> Result<Piped, StoreError> {
        let client = self.client();
        let mut statements = Vec::with_capacity(asks.len());
        for ask in asks {
            statements.push(self.in_time(Access::Read, client.prepare_cached(ask.sql)).await?);
        }
        let bound: Vec<_> = asks.iter().map(|ask| values(&ask.cells)).collect();
        let control = |sql: &str| {
            let sql = sql.to_owned();
            Box::pin(async move { client.batch_execute(&sql).await.map(|()| Vec::new()) }) as Sent<'_>
        };
        let mut sent: Vec<Sent<'_>> = begin.map(control).into_iter().collect();
        for (statement, values) in statements.iter().zip(&bound) {
            sent.push(Box::pin(client.query(statement, values)));
        }
        sent.extend(end.map(control));
        self.is_busy.store(true, Ordering::Relaxed);
        let answers = tokio::time::timeout(ANSWER, in_order(sent)).await;
        let Ok(answers) = answers else {
            return Ok(Piped::Failed { error: Trouble::silence().into(), is_certain: end.is_none() });
        };
        let n_answers = answers.len();
        let mut rows = Vec::with_capacity(n_answers);
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(found) => rows.push(found),
                Err(error) => {
                    // If the database itself refused a statement, it has not got to the end. At the end it says so
                    // if it has undone everything because of others.
                    let is_end = end.is_some() && at + 1 == n_answers;
                    let code = error.code().map_or("", |code| code.code());
                    let is_certain =
                        end.is_none() || (!code.is_empty() && (!is_end || code.starts_with("40")));
                    let error = StoreError::from(error);
                    self.note_failure(Access::Write, &error);
                    return Ok(Piped::Failed { error, is_certain });
                }
            }
        }
        if end.is_some() {
            self.condition.succeeded(Access::Write);
            self.is_busy.store(false, Ordering::Relaxed);
        }
        rows.drain(..usize::from(begin.is_some()));
        rows.truncate(asks.len());
        Ok(Piped::Done(rows))
    }

    /// Makes sure that the database understands a statement.
    #[cfg(test)]
    pub(super) async fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.in_time(Access::Read, self.client().prepare(sql)).await.map(drop)
    }

    /// Asks several things at once, in the middle of a transaction.
    pub(super) async fn ask_all(&self, asks: &[BoundStatement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        match self.pipeline(None, asks, None).await? {
            Piped::Done(rows) => Ok(rows),
            Piped::Failed { error, .. } => Err(error),
        }
    }

    /// Says something that has no answer.
    pub(super) async fn say(&self, sql: &str) -> Result<(), StoreError> {
        self.in_time(Access::Read, self.client().batch_execute(sql)).await
    }

    /// The same, however long it takes.
    pub(super) async fn run_without_time_limit(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.client().batch_execute(sql).await?)
    }

    /// Begins something that goes on until the link is dropped, and is undone then.
    #[cfg(feature = "sqlite")]
    pub(super) async fn hold(&self, begin: &str) -> Result<(), StoreError> {
        self.is_busy.store(true, Ordering::Relaxed);
        self.say(begin).await
    }

    /// Rolls the open transaction back; the connection can be used again, or is closed.
    pub(super) async fn roll_back(&self) {
        if self.say("ROLLBACK").await.is_ok() {
            self.is_busy.store(false, Ordering::Relaxed);
        }
    }

    /// Does something in a transaction, wholly or not at all.
    pub(super) async fn transact<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.is_busy.store(true, Ordering::Relaxed);
        self.say("BEGIN").await?;
        self.end(work.await).await
    }

    /// Asks several things about the same moment.
    pub(super) async fn at_one_moment<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.is_busy.store(true, Ordering::Relaxed);
        self.say("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        self.end(work.await).await
    }

    async fn end<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_ok() {
            self.say("COMMIT").await?;
            self.is_busy.store(false, Ordering::Relaxed);
        } else {
            self.roll_back().await;
        }
        done
    }

    fn note_failure(&self, access: Access, error: &StoreError) {
        if let Some((fault, reason)) = fault(error) {
            self.condition.failed(access, fault, reason);
        }
    }

    async fn in_time<T>(
        &self,
        access: Access,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(ANSWER, asked).await {
            Ok(Ok(answer)) => {
                self.condition.succeeded(access);
                Ok(answer)
            }
            Ok(Err(error)) => {
                let error = StoreError::from(error);
                self.note_failure(access, &error);
                Err(error)
            }
            Err(_) => {
                self.is_busy.store(true, Ordering::Relaxed);
                Err(Trouble::silence().into())
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.is_busy.load(Ordering::Relaxed)
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}

/// The key of a row, as far as it can be read.
fn key_of(table: &KeyedTable, row: &Row) -> String {
    let part = |column: &&str| {
        let id = row.try_get::<_, Uuid>(*column).map(table.id);
        let number = |_| row.try_get::<_, i64>(*column).map(|n| n.to_string());
        let small = |_| row.try_get::<_, i32>(*column).map(|n| n.to_string());
        let party = |_| row.try_get::<_, &[u8]>(*column).map(|party| party_in_words(table, party));
        let text = |_| row.try_get::<_, String>(*column).map(unescape);
        id.or_else(number).or_else(small).or_else(party).or_else(text).unwrap_or_else(|_| "?".to_owned())
    };
    table.key.iter().map(part).collect::<Vec<_>>().join("/")
}

/// A party of a message: the kind, and the id or the name.
fn party_in_words(table: &KeyedTable, party: &[u8]) -> String {
    let name = party.get(1..).unwrap_or_default();
    Uuid::from_slice(name).map_or_else(|_| String::from_utf8_lossy(name).into_owned(), table.id)
}

/// The result of a pipeline.
pub(super) enum Piped {
    /// The rows of each statement.
    Done(Vec<Vec<Row>>),
    /// A statement failed. Either nothing was kept for certain, or the outcome is unknown.
    Failed { error: StoreError, is_certain: bool },
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

fn values<'c>(cells: &'c [Cell<'_>]) -> Vec<&'c (dyn ToSql + Sync)> {
    cells.iter().map(|cell| &**cell as &(dyn ToSql + Sync)).collect()
}

/// Runs futures side by side. Each sends when it is first polled, so that they are sent in order, and none waits
/// for an answer before the next is sent.
async fn in_order(mut open: Vec<Sent<'_>>) -> Vec<Result<Vec<Row>, tokio_postgres::Error>> {
    let mut answers: Vec<Option<_>> = open.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut all_ready = true;
        for (future, answer) in open.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *answer = Some(output),
                    Poll::Pending => all_ready = false,
                }
            }
        }
        if all_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
