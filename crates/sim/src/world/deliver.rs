//! What runs and accounts do to runs: messages that wait in the store until some server has delivered them.

use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Child, Delivery, Message, Note, Party};

use super::World;
use crate::checker::Violation;
use crate::server::{Along, Said};

impl World {
    pub(super) fn deliver(&mut self, server: usize) -> Result<(), Violation> {
        for message in self.disk.outbox(self.now) {
            if !self.servers[server].is_up {
                return Ok(());
            }
            match (message.note.delivery(), &message.to) {
                (Delivery::Create(child), _) => self.create_child(server, &message, &child)?,
                (Delivery::Submit(input), Party::Run(run)) => self.tell(server, &message, *run, &input)?,
                (Delivery::Submit(input), Party::Account(account)) => {
                    self.tell_all(server, account, &input)?;
                    self.forget(&message);
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, server: usize, message: &Message, run: RunId, input: &Input) -> Result<(), Violation> {
        if self.disk.row(run).is_none() {
            // A run that is yet to be created is told afterwards.
            if !self.is_to_be_created(run) {
                self.forget(message);
            }
            return Ok(());
        }
        if let Said::Refused(_) = self.submit(server, run, input, &delivering(message))? {
            self.forget(message);
        }
        Ok(())
    }

    fn tell_all(&mut self, server: usize, account: &String, input: &Input) -> Result<(), Violation> {
        let rows = self.disk.rows().into_iter().filter(|row| row.origin.account.as_ref() == Some(account));
        for run in rows.map(|row| row.id).collect::<Vec<RunId>>() {
            self.submit(server, run, input, &Along::default())?;
        }
        Ok(())
    }

    /// A call of a flow creates its child, in the commit that delivers the message: never twice, never not at all.
    fn create_child(&mut self, server: usize, message: &Message, child: &Child) -> Result<(), Violation> {
        let parent = &child.parent;
        self.plans.insert(child.child, self.leaf.clone());
        let (input, origin) = self.child_start(child);
        let along = Along { create: Some(origin), ..delivering(message) };
        match self.submit(server, child.child, &input, &along)? {
            Said::Taken => match self.plan_of(parent.run) {
                Some(plan) => self.checker.called(&plan, parent.run, &parent.node, parent.fence),
                None => Ok(()),
            },
            Said::Refused(_) if self.disk.row(child.child).is_some() => {
                self.forget(message);
                Ok(())
            }
            Said::Refused(refusal) => {
                self.tell(server, message, parent.run, &child.refused(refusal.to_string()))
            }
            Said::Existing(_) | Said::Outdated | Said::Nothing => Ok(()),
        }
    }

    fn is_to_be_created(&self, run: RunId) -> bool {
        self.disk.outbox_to(run).iter().any(|message| matches!(message.note, Note::StartChild(_)))
    }

    /// A message that nobody wants any more, or that all have heard.
    fn forget(&mut self, message: &Message) {
        let mut commit = Commit::new(self.disk.command(), self.now);
        commit.delivered.push(message.id.clone());
        self.disk.commit(commit, &mut self.faults, &mut self.rng);
    }
}

fn delivering(message: &Message) -> Along {
    Along { delivered: vec![message.id.clone()], ..Along::default() }
}
