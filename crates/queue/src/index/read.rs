//! Filling the views of queues with limits from the store.

use std::sync::Arc;

use windlass_store::job::{JobRow, KeyQuery, KeyRows, ReadyQuery};

use super::{Index, Place, weight_of};
use crate::gate::Gate;
use crate::list::{Key, Known, Mark};
use crate::view;

/// A view that somebody reads from the store.
#[derive(Debug)]
pub(crate) struct Filling {
    queue: String,
    service: Option<String>,
    /// Of the gate.
    number: u64,
    question: Asked,
}

#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// In order, whatever their limit keys are.
    InOrder(ReadyQuery),
    ByKey(KeyQuery),
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Heard {
    InOrder(Vec<JobRow>),
    ByKey(KeyRows),
}

/// The same for both: what was read of each lane, and how much is known of those that were not.
struct Read {
    lanes: Vec<(String, Known, Vec<JobRow>)>,
    others: Known,
    after: Option<Arc<str>>,
}

impl Filling {
    pub(crate) fn question(&self) -> Asked {
        self.question.clone()
    }
}

impl Index {
    /// Begins to read a view from the store.
    pub(super) fn begin_reading(&mut self, queue: &str, service: Option<&str>, n: usize) -> Option<Filling> {
        let limit = self.n_to_read();
        let gate = self.gates.get_mut(queue)?;
        let (number, takes_turns, taken) = (gate.number, gate.takes_turns(), gate.taken.clone());
        let view = gate.view_mut(service);
        if !view.needs_filling(n) {
            return None;
        }
        let question = if takes_turns {
            let (except, after) = (view.keys(), view.after());
            let (queue, service) = (queue.to_owned(), service.map(str::to_owned));
            Asked::ByKey(KeyQuery { queue, service, except, taken, after, limit, ..KeyQuery::default() })
        } else {
            let pair = |service: &str| (queue.to_owned(), service.to_owned());
            let queues = if service.is_none() { vec![queue.to_owned()] } else { Vec::new() };
            let pairs = service.map(pair).into_iter().collect();
            Asked::InOrder(ReadyQuery { queues, pairs, limit, ..ReadyQuery::default() })
        };
        view.begin_filling(!takes_turns);
        self.n_filling += 1;
        Some(Filling { queue: queue.to_owned(), service: service.map(str::to_owned), number, question })
    }

    /// What the store had for a view; `None` if it could not be asked.
    pub(crate) fn heard(&mut self, filling: &Filling, heard: Option<Heard>) {
        let Filling { queue, service, number, question } = filling;
        let is_same = |gate: &&mut Gate| gate.number == *number;
        if let Some(gate) = self.gates.get_mut(queue).filter(is_same) {
            let still = gate.view_mut(service.as_deref()).end_filling();
            if let Some(heard) = heard {
                self.learn(queue, service.as_deref(), read(heard, question), still);
            }
        }
        self.end_reading();
        self.stir(queue);
    }

    fn learn(&mut self, queue: &str, service: Option<&str>, read: Read, still: view::Filling) {
        let Read { mut lanes, mut others, after } = read;
        // What may be handed out goes first: there may not be room for all.
        if let Some(gate) = self.gates.get(queue) {
            lanes.sort_by_key(|(limit_key, ..)| !gate.standing(limit_key).is_open);
        }
        let (mut n, mut bytes) = (0usize, 0usize);
        let up_to = |rows: &[JobRow]| match still.is_doubted {
            true => rows.last().map_or(Known::Nothing, |last| view::up_to(&Key::of(last))),
            false => Known::All,
        };
        others = others.min(lanes.iter().map(|(_, _, rows)| up_to(rows)).max().unwrap_or(up_to(&[])));
        for (limit_key, known, rows) in lanes {
            let known = known.min(still.lanes).min(up_to(&rows));
            let known = self.fitting(known, &rows, n > 0);
            n += rows.len();
            bytes = rows.iter().map(weight_of).fold(bytes, usize::saturating_add);
            let Some(gate) = self.gates.get_mut(queue) else { return };
            let lane = gate.lane(&limit_key);
            gate.view_mut(service).learn(&lane, known);
            for row in rows {
                self.learn_row(row, known);
            }
            let Some(gate) = self.gates.get_mut(queue) else { return };
            gate.place(&lane);
            if !gate.view_mut(service).has_lane(&lane) {
                others = others.min(known);
            }
        }
        let Some(gate) = self.gates.get_mut(queue) else { return };
        let turn = gate.next_turn();
        gate.view_mut(service).learn_others(others.min(still.others), turn, after);
        self.bytes_per_row = bytes.checked_div(n).unwrap_or(self.bytes_per_row);
    }

    /// How much of a lane will be known: what there is no room for is not. One is always added, so that whoever asked
    /// gets on.
    fn fitting(&self, known: Known, rows: &[JobRow], may_be_none: bool) -> Known {
        let rows_max = self.limits.rows.saturating_add(self.limits.fill_rows);
        let (mut n, mut bytes) = (self.ready.n, self.ready.bytes);
        // What is here already needs no room.
        let news = rows.iter().filter(|row| !self.is_old(row.id(), row.rev));
        for (at, row) in news.enumerate() {
            let is_full = n >= rows_max || bytes >= self.limits.bytes;
            if is_full && (at > 0 || may_be_none) {
                return known.min(Known::Before(Mark::at(Key::of(row))));
            }
            (n, bytes) = (n + 1, bytes.saturating_add(weight_of(row)));
        }
        known
    }

    fn learn_row(&mut self, row: JobRow, known: Known) {
        let key = Key::of(&row);
        if !known.covers(key) {
            return;
        }
        if !self.is_old(row.id(), row.rev) {
            self.remove(row.id());
            self.count(&row);
            self.add_ready(Arc::new(row), false);
            return;
        }
        // It is ready, and another view knows of it.
        let is_ready = |slot: &super::Slot| slot.place == Place::Ready && slot.row.rev == row.rev;
        if self.rows.get(&row.id()).is_some_and(is_ready)
            && let Some(gate) = self.gates.get_mut(&row.job.spec.queue)
        {
            gate.insert(&row.job.spec.limit_key, &row.job.spec.name, key);
        }
    }
}

fn read(heard: Heard, question: &Asked) -> Read {
    let limit = match question {
        Asked::InOrder(query) => query.limit,
        Asked::ByKey(query) => query.limit,
    };
    match heard {
        Heard::InOrder(rows) => {
            let last = rows.last().filter(|_| rows.len() >= limit).map(Key::of);
            let known = last.map_or(Known::All, |last| Known::Before(Mark::after(last)));
            Read { lanes: vec![(String::new(), known, rows)], others: known, after: None }
        }
        Heard::ByKey(rows) => read_by_key(rows),
    }
}

fn read_by_key(KeyRows { turns, rest }: KeyRows) -> Read {
    let after = turns.last().filter(|_| rest.is_some()).map(|turn| Arc::from(turn.key.as_str()));
    let others = rest.map_or(Known::All, |rest| Known::Before(Mark::start_of(rest)));
    let mut lanes: Vec<(String, Known, Vec<JobRow>)> = Vec::new();
    let mut at: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for turn in turns {
        let at = *at.entry(turn.key.clone()).or_insert_with(|| {
            lanes.push((turn.key, others, Vec::new()));
            lanes.len() - 1
        });
        let Some((_, known, rows)) = lanes.get_mut(at) else { continue };
        // Whatever comes after a turn that was not read to its end is not known.
        if *known < others {
            continue;
        }
        let last = turn.rows.last().map(Key::of).filter(|_| !turn.is_all);
        rows.extend(turn.rows);
        if let Some(last) = last {
            *known = Known::Before(Mark::after(last));
        } else if Some(turn.priority) == rest {
            *known = Known::Before(Mark::end_of(turn.priority));
        }
    }
    Read { lanes, others, after }
}
