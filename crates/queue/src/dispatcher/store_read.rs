//! Reads of the store that a claim makes before jobs can be dispatched.

use std::collections::VecDeque;

use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, KeyQuery, KeyRows, ReadyQuery};
use windlass_store::queue::Held;

use super::Dispatcher;
use crate::index::{LimitedListQuery, LimitedListRows, PlannedRead};

/// Reads to make, one after another. When it is dropped, the remaining ones are left to the next claim.
#[derive(Debug)]
pub struct StoreRead<'a> {
    dispatch: &'a Dispatcher,
    reads: VecDeque<PlannedRead>,
}

/// One read of the store.
#[derive(Debug)]
pub enum StoreReadQuery {
    Ready(ReadyQuery),
    ReadyByKey(KeyQuery),
    /// The held jobs of this queue.
    Held(String),
}

/// The result of one read.
#[derive(Debug)]
pub enum StoreReadResult {
    Ready(Vec<JobRow>),
    ReadyByKey(KeyRows),
    Held(Held),
}

impl<'a> StoreRead<'a> {
    pub(super) fn new(dispatch: &'a Dispatcher, reads: Vec<PlannedRead>) -> Self {
        StoreRead { dispatch, reads: reads.into() }
    }

    /// The next read; `None` if there are no more.
    pub fn query(&self, now: Timestamp) -> Option<StoreReadQuery> {
        Some(match self.reads.front()? {
            PlannedRead::Lists { query, except, from, limit, portion, .. } => {
                StoreReadQuery::Ready(ReadyQuery {
                    queues: query.queues.clone(),
                    services: query.services.clone(),
                    except: except.clone(),
                    portion: *portion,
                    from: *from,
                    now,
                    limit: *limit,
                    ..ReadyQuery::default()
                })
            }
            PlannedRead::Class { query, except, from, limit } => StoreReadQuery::Ready(ReadyQuery {
                queues: query.queues.clone(),
                services: query.services.clone(),
                except: except.clone(),
                from: Some(*from),
                is_of_runs: true,
                now,
                limit: *limit,
                ..ReadyQuery::default()
            }),
            PlannedRead::LimitedList(read) => match read.query() {
                LimitedListQuery::InOrder(query) => StoreReadQuery::Ready(ReadyQuery { now, ..query }),
                LimitedListQuery::ByKey(query) => StoreReadQuery::ReadyByKey(KeyQuery { now, ..query }),
            },
            PlannedRead::Held(counting) => StoreReadQuery::Held(counting.queue().to_owned()),
        })
    }

    /// Takes the result of the next read. A result of another kind counts as a failed read.
    pub fn add_result(&mut self, answer: StoreReadResult) {
        if let Some(read) = self.reads.pop_front() {
            self.tell(read, Some(answer));
        }
    }

    fn tell(&self, read: PlannedRead, answer: Option<StoreReadResult>) {
        let index = &mut self.dispatch.lock().index;
        match (read, answer) {
            (PlannedRead::Lists { query, limit, begun, portion, .. }, Some(StoreReadResult::Ready(rows))) => {
                index.add_list_rows(&query, begun, portion, Some((rows, limit)));
            }
            (
                PlannedRead::Lists { query, begun, portion, .. },
                Some(StoreReadResult::ReadyByKey(_) | StoreReadResult::Held(_)) | None,
            ) => {
                index.add_list_rows(&query, begun, portion, None);
            }
            (PlannedRead::Class { limit, .. }, Some(StoreReadResult::Ready(rows))) => {
                index.add_class_rows(Some((rows, limit)))
            }
            (
                PlannedRead::Class { .. },
                Some(StoreReadResult::ReadyByKey(_) | StoreReadResult::Held(_)) | None,
            ) => {
                index.add_class_rows(None);
            }
            (PlannedRead::LimitedList(read), Some(StoreReadResult::Ready(rows))) => {
                index.add_limited_rows(&read, Some(LimitedListRows::InOrder(rows)));
            }
            (PlannedRead::LimitedList(read), Some(StoreReadResult::ReadyByKey(rows))) => {
                index.add_limited_rows(&read, Some(LimitedListRows::ByKey(rows)));
            }
            (PlannedRead::LimitedList(read), Some(StoreReadResult::Held(_)) | None) => {
                index.add_limited_rows(&read, None)
            }
            (PlannedRead::Held(counting), Some(StoreReadResult::Held(held))) => {
                index.set_held(&counting, Some(held))
            }
            (
                PlannedRead::Held(counting),
                Some(StoreReadResult::Ready(_) | StoreReadResult::ReadyByKey(_)) | None,
            ) => {
                index.set_held(&counting, None);
            }
        }
    }
}

impl Drop for StoreRead<'_> {
    fn drop(&mut self) {
        while let Some(read) = self.reads.pop_front() {
            self.tell(read, None);
        }
    }
}
