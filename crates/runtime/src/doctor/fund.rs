//! Whether calls wait for money that is there.

use std::collections::BTreeSet;

use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_store::StoreError;
use windlass_store::outbox::Party;

use super::{FINDINGS, Finding};
use crate::mailbox::Letter;
use crate::run::RunView;
use crate::{Runtime, RuntimeError};

/// A run whose calls could go when it was looked at.
pub(super) struct Stuck {
    pub(super) run: RunId,
    /// Of its journal.
    pub(super) len: u64,
}

/// What calls wait for that is there.
pub(super) enum There {
    Budget,
    Balance { account: String, needs: i64, balance: i64 },
}

impl Runtime {
    /// Money for which calls of this run wait, and which is there.
    pub(super) async fn could_go(&self, view: &RunView) -> Result<Option<There>, StoreError> {
        if view.state.is_overlooked() {
            return Ok(Some(There::Budget));
        }
        let (Some(needs), Some(account)) = (view.state.needs(), &view.state.start.account) else {
            return Ok(None);
        };
        let balance = self.store().account(account).await?.map_or(0, |row| row.balance);
        let account = account.clone();
        Ok((needs <= balance).then_some(There::Balance { account, needs, balance }))
    }

    /// Looks once more at runs that could go on when they were looked at: most of them have gone on.
    pub(super) async fn examine_stuck(
        &self,
        stuck: Vec<Stuck>,
        repair: bool,
        findings: &mut Vec<Finding>,
    ) -> Result<(), RuntimeError> {
        // Whoever is about to look at an account does so for all its runs, however many messages say so.
        let mut funded = BTreeSet::new();
        for Stuck { run, len } in stuck {
            if findings.len() >= FINDINGS {
                return Ok(());
            }
            let Some(view) = self.view(run).await?.filter(|view| view.row.len == len) else { continue };
            let Some(there) = self.could_go(&view).await? else { continue };
            let what = match there {
                There::Budget => {
                    if repair {
                        self.post(run, Letter::of(Input::BalanceChanged { budget: None, balance: None }));
                    }
                    "calls wait for a larger budget, and there is enough of it".to_owned()
                }
                There::Balance { account, .. } if funded.contains(&account) => continue,
                There::Balance { account, .. } if self.is_being_funded(&account).await? => {
                    funded.insert(account);
                    continue;
                }
                There::Balance { account, needs, balance } => {
                    if repair {
                        self.look_at_account(&account);
                    }
                    format!("calls wait for {needs}, and account `{account}` has {balance}")
                }
            };
            findings.push(Finding { subject: run.to_string(), node: None, what, repaired: repair });
        }
        Ok(())
    }

    /// Whether somebody looks at the account, or is about to.
    async fn is_being_funded(&self, account: &str) -> Result<bool, StoreError> {
        if self.needy().is_looked_at(account) {
            return Ok(true);
        }
        Ok(!self.store().outbox_to(Party::Account(account.to_owned())).await?.is_empty())
    }
}
