//! Checks of waiting calls: no call waits for money that its account or budget has.

use std::collections::BTreeSet;

use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::money::Amount;
use windlass_store::StoreError;
use windlass_store::outbox::Party;

use super::{DoctorFinding, FINDINGS_MAX};
use crate::RuntimeError;
use crate::doctor::Doctor;
use crate::part::RuntimePart;
use crate::runs::RunView;
use crate::runs::mailbox::Envelope;

/// A run with calls that could continue when it was examined.
pub(super) struct StuckRun {
    pub(super) run: RunId,
    /// The length of its journal.
    pub(super) len: Seq,
}

/// Money that calls wait for although it is there.
pub(super) enum AvailableFunds {
    Budget,
    Balance { account: String, needs: Amount, balance: Amount },
}

impl Doctor {
    /// Money for which calls of this run wait, and which is there.
    pub(super) async fn could_go(&self, view: &RunView) -> Result<Option<AvailableFunds>, StoreError> {
        if view.state.is_overlooked() {
            return Ok(Some(AvailableFunds::Budget));
        }
        let (Some(needs), Some(account)) = (view.state.needs(), &view.state.start.account) else {
            return Ok(None);
        };
        let balance =
            self.store().account(self.project(), account).await?.map_or(Amount::ZERO, |row| row.balance);
        let account = account.clone();
        Ok((needs <= balance).then_some(AvailableFunds::Balance { account, needs, balance }))
    }

    /// Examines stuck runs once more: most of them have gone on.
    pub(super) async fn examine_stuck(
        &self,
        stuck: Vec<StuckRun>,
        repair: bool,
        findings: &mut Vec<DoctorFinding>,
    ) -> Result<(), RuntimeError> {
        // The task that checks an account serves all its runs, however many messages name it.
        let mut funded = BTreeSet::new();
        for StuckRun { run, len } in stuck {
            if findings.len() >= FINDINGS_MAX {
                return Ok(());
            }
            let Some(view) = self.runs().view(run).await?.filter(|view| view.row.len == len) else {
                continue;
            };
            let Some(there) = self.could_go(&view).await? else { continue };
            let what = match there {
                AvailableFunds::Budget => {
                    if repair {
                        self.runs()
                            .send(run, Envelope::of(Input::BalanceChanged { budget: None, balance: None }));
                    }
                    "calls wait for a larger budget, and there is enough of it".to_owned()
                }
                AvailableFunds::Balance { account, .. } if funded.contains(&account) => continue,
                AvailableFunds::Balance { account, .. } if self.is_being_funded(&account).await? => {
                    funded.insert(account);
                    continue;
                }
                AvailableFunds::Balance { account, needs, balance } => {
                    if repair {
                        self.money().check_account_soon(&account);
                    }
                    format!("calls wait for {needs}, and account `{account}` has {balance}")
                }
            };
            findings.push(DoctorFinding { repaired: repair, ..DoctorFinding::about(run, what) });
        }
        Ok(())
    }

    /// Whether a task checks the account, or is about to.
    async fn is_being_funded(&self, account: &str) -> Result<bool, StoreError> {
        if self.money().is_checking(account) {
            return Ok(true);
        }
        Ok(!self.store().outbox_to(self.project(), Party::Account(account.to_owned())).await?.is_empty())
    }
}
