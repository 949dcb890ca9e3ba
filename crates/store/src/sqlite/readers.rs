//! Reader threads, each with a read-only connection. Each read sees one snapshot of the database.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, OpenFlags};

use super::oneshot::{AnswerReceiver, oneshot};
use super::schema;
use super::work_queue::WorkQueue;
use crate::error::StoreError;

/// Enough that one long list does not delay other reads, few enough for two cores.
const READER_THREADS: usize = 4;

type ReadTask = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    queue: Arc<WorkQueue<ReadTask>>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("n", &self.threads.len()).finish()
    }
}

impl Readers {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let mut readers = Readers { queue: Arc::new(WorkQueue::new()), threads: Vec::new() };
        for n in 0..READER_THREADS {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let db = Connection::open_with_flags(path, flags)?;
            schema::prepare_reader(&db)?;
            let queue = readers.queue.clone();
            let thread = thread::Builder::new().name(format!("sqlite-reader-{n}"));
            let thread = thread.spawn(move || serve(&db, &queue));
            readers.threads.push(thread.map_err(StoreError::unavailable)?);
        }
        Ok(readers)
    }

    /// Queues a read; all its statements see the same snapshot.
    pub(super) fn read<T, F>(&self, question: F) -> Result<AnswerReceiver<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (sender, receiver) = oneshot();
        let question = move |db: &Connection| sender.send(at_one_moment(db, question));
        self.queue.put(vec![Box::new(question)])?;
        Ok(receiver)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // A panic of the thread was reported already.
            drop(thread.join());
        }
    }
}

fn serve(db: &Connection, queue: &WorkQueue<ReadTask>) {
    loop {
        let questions = queue.take(1);
        if questions.is_empty() {
            return;
        }
        questions.into_iter().for_each(|question| question(db));
    }
}

fn at_one_moment<T>(
    db: &Connection,
    question: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Dropping it rolls back, which is right for a read.
    let _moment = db.unchecked_transaction()?;
    question(db)
}
