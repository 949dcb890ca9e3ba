//! Delivery of messages from runs and accounts to runs. A message stays in the store until a server has delivered it.

use windlass_engine::event::Parent;
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::Bill;
use windlass_engine::project::Project;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Child, Delivery, Message, Note, Party};

use super::SimWorld;
use crate::checker::Violation;
use crate::server::{SimExtraWrites, SimReply};

impl SimWorld {
    pub(crate) fn deliver(&mut self, server: usize) -> Result<(), Violation> {
        for message in self.store.outbox(self.now) {
            if !self.servers[server].is_up {
                return Ok(());
            }
            match (message.note.delivery(), &message.to) {
                (Delivery::Create(child), _) => self.create_child(server, &message, &child)?,
                (Delivery::Submit(input), Party::Run(run)) => self.tell(server, &message, *run, &input)?,
                (Delivery::Submit(input), Party::Account(account)) => {
                    self.tell_all(server, account, &input)?;
                    self.forget(&[&message]);
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, server: usize, message: &Message, run: RunId, input: &Input) -> Result<(), Violation> {
        if self.store.row(run).is_none() {
            return match self.creation_of(run) {
                Some((creation, child)) if matches!(message.note, Note::CancelChild) => {
                    self.take_back(server, &creation, &child, message)
                }
                // A run that is not created yet gets its messages afterwards.
                Some(_) => Ok(()),
                None => {
                    self.forget(&[message]);
                    Ok(())
                }
            };
        }
        if let SimReply::Refused(_) = self.submit(server, run, input, &delivering(&[message]))? {
            self.forget(&[message]);
        }
        Ok(())
    }

    /// A child that is canceled before it was created never is: both messages go in the commit that tells its parent.
    fn take_back(
        &mut self,
        server: usize,
        creation: &Message,
        child: &Child,
        cancel: &Message,
    ) -> Result<(), Violation> {
        let Parent { run, node, fence, .. } = child.parent.clone();
        let (outcome, bill) = (Some(CallOutcome::Canceled), Bill::default());
        let ended = Input::ChildEnded { node, fence, outcome, bill };
        let both = [creation, cancel];
        if self.store.row(run).is_none() {
            self.forget(&both);
        } else if let SimReply::Refused(_) = self.submit(server, run, &ended, &delivering(&both))? {
            self.forget(&both);
        }
        Ok(())
    }

    fn tell_all(&mut self, server: usize, account: &String, input: &Input) -> Result<(), Violation> {
        let rows = self.store.rows().into_iter().filter(|row| row.origin.account.as_ref() == Some(account));
        for run in rows.map(|row| row.id).collect::<Vec<RunId>>() {
            self.submit(server, run, input, &SimExtraWrites::default())?;
        }
        Ok(())
    }

    /// Creates the child of a flow call in the commit that delivers the message, so exactly once.
    fn create_child(&mut self, server: usize, message: &Message, child: &Child) -> Result<(), Violation> {
        let parent = &child.parent;
        self.set_plan(child.child, self.leaf.clone());
        let (input, origin) = self.child_start(child);
        let extra = SimExtraWrites { create: Some(origin), ..delivering(&[message]) };
        match self.submit(server, child.child, &input, &extra)? {
            SimReply::Taken => match self.plan_of(parent.run) {
                Some(plan) => self.checker.called(&plan, parent.run, &parent.node, parent.fence),
                None => Ok(()),
            },
            SimReply::Refused(_) if self.store.row(child.child).is_some() => {
                self.forget(&[message]);
                Ok(())
            }
            SimReply::Refused(refusal) => {
                self.tell(server, message, parent.run, &child.refused(refusal.to_string()))
            }
            SimReply::Existing(_) | SimReply::Outdated | SimReply::Nothing => Ok(()),
        }
    }

    /// The message that creates this run, if it is yet to be delivered.
    fn creation_of(&self, run: RunId) -> Option<(Message, Box<Child>)> {
        self.store.outbox_to(run).into_iter().find_map(|message| {
            let Note::StartChild(child) = &message.note else { return None };
            let child = child.clone();
            Some((message, child))
        })
    }

    /// Removes messages that have no recipient any more, or that all recipients have.
    fn forget(&mut self, messages: &[&Message]) {
        let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
        commit.delivered.extend(messages.iter().map(|message| message.id.clone()));
        self.store.commit(commit, &mut self.faults, &mut self.rng);
    }
}

fn delivering(messages: &[&Message]) -> SimExtraWrites {
    let delivered = messages.iter().map(|message| message.id.clone()).collect();
    SimExtraWrites { delivered, ..SimExtraWrites::default() }
}
