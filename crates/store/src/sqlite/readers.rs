//! The threads that read: a few, each with a connection of its own that cannot write. What they see is what was
//! committed before they began.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, OpenFlags};

use super::inbox::Inbox;
use super::schema;
use super::ticket::{Ticket, ticket};
use crate::error::StoreError;

/// Readers: enough that one long list does not hold up the others, few enough for two cores.
const READERS: usize = 4;

type Question = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    inbox: Arc<Inbox<Question>>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("n", &self.threads.len()).finish()
    }
}

impl Readers {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let mut readers = Readers { inbox: Arc::new(Inbox::new()), threads: Vec::new() };
        for n in 0..READERS {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let db = Connection::open_with_flags(path, flags)?;
            schema::prepare_reader(&db)?;
            let inbox = readers.inbox.clone();
            let thread = thread::Builder::new().name(format!("sqlite-reader-{n}"));
            let thread = thread.spawn(move || serve(&db, &inbox));
            readers.threads.push(thread.map_err(|error| StoreError::Unavailable(Box::new(error)))?);
        }
        Ok(readers)
    }

    /// Asks a question; all its statements see the same state.
    pub(super) fn read<T, F>(&self, question: F) -> Result<Ticket<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (promise, ticket) = ticket();
        let question = move |db: &Connection| promise.keep(at_one_moment(db, question));
        self.inbox.put(vec![Box::new(question)])?;
        Ok(ticket)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.inbox.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            drop(thread.join());
        }
    }
}

fn serve(db: &Connection, inbox: &Inbox<Question>) {
    loop {
        let questions = inbox.take(1);
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
    // Ends when it is dropped; there is nothing to be kept of it.
    let _moment = db.unchecked_transaction()?;
    question(db)
}
