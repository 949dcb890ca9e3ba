//! Inputs that an actor makes itself: the ends of quick functions, and the next slice of an open agenda.

use std::collections::VecDeque;

use windlass_engine::effect::CallSpec;
use windlass_engine::input::Input;

use crate::calls::Calls;
use crate::runs::mailbox::Envelope;

/// Inputs of an actor to its own run. A quick function is called when its turn comes, so that the answers of a wide fan
/// are never in memory all at once.
#[derive(Default)]
pub(crate) struct OwnInputs {
    envelopes: VecDeque<Envelope>,
    calls: VecDeque<CallSpec>,
    /// A spent budget left the agenda of the run open: the actor goes on with it after all else.
    has_agenda: bool,
}

impl OwnInputs {
    /// No input, or the next slice of an open agenda.
    pub(crate) fn continuing(has_agenda: bool) -> Self {
        OwnInputs { has_agenda, ..OwnInputs::default() }
    }

    /// Whether the next slice of an open agenda is all that the actor has to do.
    pub(crate) fn is_only_agenda(&self) -> bool {
        self.has_agenda && self.envelopes.is_empty() && self.calls.is_empty()
    }

    /// Makes a call, or keeps it for its turn if it is quick.
    pub(crate) fn call(&mut self, calls: &Calls, spec: CallSpec) {
        if calls.is_quick(&spec) {
            self.calls.push_back(spec);
        } else {
            self.envelopes.extend(calls.make(spec));
        }
    }

    /// Calls and envelopes that wait for their turn.
    pub(crate) fn len(&self) -> usize {
        self.envelopes.len() + self.calls.len() + usize::from(self.has_agenda)
    }

    /// The next inputs, at most so many.
    pub(crate) fn next(&mut self, calls: &Calls, max: usize) -> Vec<Envelope> {
        let mut next: Vec<Envelope> = self.envelopes.drain(..max.min(self.envelopes.len())).collect();
        while next.len() < max
            && let Some(spec) = self.calls.pop_front()
        {
            next.extend(calls.make(spec));
        }
        if next.is_empty() && std::mem::take(&mut self.has_agenda) {
            next.push(Envelope::of(Input::TimePassed));
        }
        next
    }

    pub(crate) fn append(&mut self, mut more: OwnInputs) {
        self.envelopes.append(&mut more.envelopes);
        self.calls.append(&mut more.calls);
        self.has_agenda |= more.has_agenda;
    }
}

impl Extend<Envelope> for OwnInputs {
    fn extend<I: IntoIterator<Item = Envelope>>(&mut self, envelopes: I) {
        self.envelopes.extend(envelopes);
    }
}
