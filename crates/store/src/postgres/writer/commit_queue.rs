//! Waiting commits, and the choice of the next group.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use windlass_engine::project::Project;

use super::Answer;
use crate::postgres::commit::Draft;

/// A small group that has waited for so long is begun: other callers are probably waiting for
/// it. A commit that waits for an account waits no longer than this before it goes and waits in the database.
pub(super) const LATE: Duration = Duration::from_millis(20);
const LARGE: usize = 64;
/// Commits in one transaction: enough to share its cost, few enough that it holds its rows for some milliseconds.
const GROUP_MAX: usize = 512;
/// Accounts fall into so many halves: the groups of one are written while those of the other are put together.
const HALVES: usize = 2;
/// Calls that wait for accounts at most, beside the queue.
const PARKED_MAX: usize = 8 * GROUP_MAX;

/// Commits of one project that are answered together.
pub(super) struct Call {
    pub(super) drafts: Vec<Draft>,
    pub(super) answer: oneshot::Sender<Vec<Answer>>,
}

impl Call {
    fn project(&self) -> Option<&Project> {
        self.drafts.first().map(|draft| &draft.commit.project)
    }

    /// The accounts that it has to have for itself.
    fn accounts(&self) -> impl Iterator<Item = &str> {
        let commits = self.drafts.iter().map(|draft| &draft.commit);
        commits.flat_map(|commit| {
            let moved = commit.postings.iter().map(|posting| posting.account.as_str());
            moved.chain(commit.unmoved.iter().map(|unmoved| unmoved.account.as_str()))
        })
    }

    /// The half that its first account falls into, if it has one.
    fn half(&self) -> Option<usize> {
        let fold = |hash: usize, byte: u8| hash.wrapping_mul(31).wrapping_add(usize::from(byte));
        self.accounts().next().map(|account| account.bytes().fold(0, fold) % HALVES)
    }
}

/// Commits that are written together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) calls: Vec<Call>,
    n_commits: usize,
    n_rows: usize,
    accounts: HashSet<String>,
    half: Option<usize>,
    begun: Option<Instant>,
}

impl Group {
    fn add(&mut self, call: Call) {
        self.n_commits += call.drafts.len();
        self.n_rows += call.drafts.iter().map(|draft| 1 + draft.commit.jobs.len()).sum::<usize>();
        self.accounts.extend(call.accounts().map(str::to_owned));
        self.half = self.half.or(call.half());
        self.begun.get_or_insert_with(Instant::now);
        self.calls.push(call);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the call is of the project of this group: a transaction writes rows of one project.
    fn is_of_project(&self, call: &Call) -> bool {
        self.calls.first().is_none_or(|first| first.project() == call.project())
    }

    /// Whether the call moves no account, or one of the same half as others here.
    fn suits(&self, call: &Call) -> bool {
        self.half.is_none() || call.half().is_none_or(|half| self.half == Some(half))
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_commits >= GROUP_MAX
    }

    pub(super) fn is_large(&self) -> bool {
        self.n_rows >= LARGE
    }

    /// When it is begun although others are.
    pub(super) fn late(&self) -> Option<Instant> {
        self.begun.map(|begun| begun + LATE)
    }
}

/// Waiting commits. A commit that moves an account of a running group is passed over: in the database it would delay the commits
/// of its group, and hold a connection.
pub(super) struct CommitQueue {
    inbox: mpsc::Receiver<Call>,
    is_open: bool,
    parked: VecDeque<(Instant, Call)>,
    /// Accounts of the groups that are being written, by who writes them.
    held: HashMap<i64, HashSet<String>>,
    /// A commit that was passed over may go now.
    is_moved: bool,
}

impl CommitQueue {
    pub(super) fn new(inbox: mpsc::Receiver<Call>) -> Self {
        let (parked, held) = (VecDeque::new(), HashMap::new());
        CommitQueue { inbox, is_open: true, parked, held, is_moved: false }
    }

    /// No commit waits, and none will come.
    pub(super) fn is_over(&self) -> bool {
        !self.is_open && self.parked.is_empty()
    }

    /// The group is being written by this one.
    pub(super) fn begin(&mut self, shard: i64, group: &mut Group) {
        self.is_moved |= !self.parked.is_empty();
        if !group.accounts.is_empty() {
            self.held.insert(shard, std::mem::take(&mut group.accounts));
        }
    }

    /// This one has written its group.
    pub(super) fn end(&mut self, shard: i64) {
        self.is_moved |= self.held.remove(&shard).is_some();
    }

    /// When a commit has been passed over for long enough.
    pub(super) fn late(&self) -> Option<Instant> {
        self.parked.front().map(|(since, _)| *since + LATE)
    }

    /// Adds all commits that may go to the group.
    pub(super) fn fill(&mut self, group: &mut Group) {
        let now = Instant::now();
        if std::mem::take(&mut self.is_moved) || self.late().is_some_and(|late| late <= now) {
            for (since, call) in std::mem::take(&mut self.parked) {
                let may_go = group.is_of_project(&call) && (now >= since + LATE || self.may_go(&call, group));
                if may_go && !group.is_full() {
                    group.add(call);
                } else {
                    self.parked.push_back((since, call));
                }
            }
        }
        while !group.is_full()
            && self.has_room()
            && let Ok(call) = self.inbox.try_recv()
        {
            self.admit(call, group);
        }
    }

    /// Waits for a commit, and adds it to the group if it may go.
    pub(super) async fn next(&mut self, group: &mut Group) {
        match self.inbox.recv().await {
            Some(call) => self.admit(call, group),
            None => self.is_open = false,
        }
    }

    /// Whether a commit may still come.
    pub(super) fn takes(&self, group: &Group) -> bool {
        self.is_open && !group.is_full() && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.parked.len() < PARKED_MAX
    }

    fn admit(&mut self, call: Call, group: &mut Group) {
        if self.may_go(&call, group) {
            group.add(call);
        } else {
            self.parked.push_back((Instant::now(), call));
        }
    }

    fn may_go(&self, call: &Call, group: &Group) -> bool {
        group.is_of_project(call) && group.suits(call) && !self.is_held(call)
    }

    fn is_held(&self, call: &Call) -> bool {
        !self.held.is_empty()
            && call.accounts().any(|account| self.held.values().any(|held| held.contains(account)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use windlass_engine::id::CommandId;
    use windlass_engine::money::{Amount, Movement};
    use windlass_engine::time::Timestamp;

    use super::*;
    use crate::account::Posting;
    use crate::commit::Commit;

    fn queue() -> (mpsc::Sender<Call>, CommitQueue) {
        let (send, inbox) = mpsc::channel(100);
        (send, CommitQueue::new(inbox))
    }

    /// A call that moves this account, or none.
    fn call(account: Option<&str>) -> Call {
        let posting = |account: &str| Posting {
            account: account.to_owned(),
            movement: Movement::deposit("x", Amount(1)),
        };
        let mut commit = Commit::new(&Project::DEFAULT, CommandId::new(Uuid::from_u128(1)), Timestamp(1));
        commit.postings.extend(account.map(posting));
        Call { drafts: vec![Draft::of(commit)], answer: oneshot::channel().0 }
    }

    fn take(queue: &mut CommitQueue) -> (usize, Group) {
        let mut group = Group::default();
        queue.fill(&mut group);
        (group.calls.len(), group)
    }

    #[test]
    fn a_commit_on_a_busy_account_waits_and_is_written_when_it_is_free() {
        let (send, mut queue) = queue();
        for account in [Some("a"), Some("a"), None] {
            send.try_send(call(account)).unwrap();
        }
        let (n, mut group) = take(&mut queue);
        assert_eq!(n, 3, "together they wait for nobody");
        queue.begin(7, &mut group);
        for account in [Some("a"), None, Some("a")] {
            send.try_send(call(account)).unwrap();
        }
        assert_eq!((take(&mut queue).0, queue.parked.len()), (1, 2));
        assert_eq!(take(&mut queue).0, 0);
        queue.end(7);
        assert_eq!((take(&mut queue).0, queue.parked.len()), (2, 0));
    }

    #[test]
    fn no_commit_is_passed_over_for_long() {
        let (send, mut queue) = queue();
        send.try_send(call(Some("a"))).unwrap();
        let (_, mut group) = take(&mut queue);
        queue.begin(7, &mut group);
        send.try_send(call(Some("a"))).unwrap();
        assert_eq!(take(&mut queue).0, 0);
        queue.parked[0].0 -= LATE;
        assert_eq!(take(&mut queue).0, 1, "the database may make it wait, not this");
    }

    #[test]
    fn accounts_of_both_halves_are_written_side_by_side() {
        let (send, mut queue) = queue();
        let halves = ["a", "b"].map(|account| call(Some(account)).half());
        assert_ne!(halves[0], halves[1]);
        for account in ["a", "b", "a", "b"] {
            send.try_send(call(Some(account))).unwrap();
        }
        let (n, mut group) = take(&mut queue);
        queue.begin(7, &mut group);
        assert_eq!((n, take(&mut queue).0), (2, 2));
    }
}
