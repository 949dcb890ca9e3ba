//! Accounts: they are opened with the world and get deposits.

use windlass_engine::counter::Seq;
use windlass_engine::money::Amount;
use windlass_engine::money::Movement;
use windlass_engine::project::Project;
use windlass_store::account::Posting;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Message, MessageId, Note, Party};

use super::SimWorld;
use crate::checker::Violation;
use crate::fault::SimFault;

impl SimWorld {
    pub(super) fn open_accounts(&mut self) {
        for number in 0..2 {
            let (id, now) = (format!("account{number}"), self.now);
            let opened = self.store.memory.open_account_now(&Project::DEFAULT, &id, &id, now);
            opened.expect("an account can be opened");
            let low = self.faults.enabled().contains(&SimFault::ShortBalance);
            let _ = self.deposit(&id, if low { 20 } else { 100_000 });
        }
    }

    /// Deposits an amount and wakes the runs that wait for it.
    pub(crate) fn deposit(&mut self, account: &str, amount: i64) -> Result<(), Violation> {
        let command = self.store.command();
        let movement = Movement::deposit(&command.to_string(), Amount(amount));
        let posting = Posting { account: account.to_owned(), movement };
        self.checker.money.posted(&posting.account, &posting.movement)?;
        let id = MessageId::new(Party::Account(account.to_owned()), Seq(self.n_queued));
        let to = Party::Account(account.to_owned());
        let message = Message { id, to, at: self.now, note: Note::BalanceChanged };
        let mut commit = Commit::new(&Project::DEFAULT, command, self.now);
        commit.postings.push(posting);
        commit.messages.push(message);
        for answer in self.store.memory.commit_now(vec![commit]) {
            answer.expect("a deposit is never refused");
        }
        self.n_queued += 1;
        Ok(())
    }
}
