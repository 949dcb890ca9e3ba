//! Expansion of steps to tasks and their dependencies.
//!
//! A step waits for the one before it, or for those it names. A parallel is no task: the first step of each of its
//! branches waits for the step before the parallel, and the next step waits for the last step of every branch. An empty
//! branch ends where it began.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Step, StepRole, StepsBranch, Tree};
use crate::definition::reader::{Reader, shown};
use crate::expr::Condition;
use crate::limits;
use crate::plan::Group;

/// Dependencies looked at in one scope: branches after branches multiply.
const WORK: usize = 20 * limits::EDGES;

/// A step that runs.
pub(super) struct Task<'s, 'v> {
    pub(super) step: &'s Step<'v>,
    pub(super) task_id: String,
    pub(super) needs: Vec<TaskNeed>,
    /// The innermost parallel around it.
    pub(super) group: Option<usize>,
}

/// One scope, expanded.
pub(super) struct Expanded<'s, 'v> {
    pub(super) tasks: Vec<Task<'s, 'v>>,
    /// Conditions that needs refer to.
    pub(super) conditions: Vec<Condition>,
    /// Parallels around tasks.
    pub(super) groups: Vec<Group>,
}

/// A task that must be settled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskNeed {
    pub(super) task: usize,
    /// The condition under which this leads on, by its place in the list.
    pub(super) when: Option<usize>,
}

/// A need that may name a step which has not been met yet.
#[derive(Debug, Clone, Copy)]
enum Wanted<'s> {
    Task(TaskNeed),
    Id(&'s str),
}

/// A conditional branch around the step being expanded.
#[derive(Clone, Copy)]
struct Around<'s> {
    id: &'s str,
    need: TaskNeed,
}

struct Expander<'s, 'v> {
    tasks: Vec<Task<'s, 'v>>,
    wanted: Vec<Vec<Wanted<'s>>>,
    conditions: Vec<Condition>,
    groups: Vec<Group>,
    /// The parallel around the step being expanded.
    group: Option<usize>,
    /// The meaning of a dependency on an id.
    ends: BTreeMap<&'s str, Vec<Wanted<'s>>>,
    work: usize,
}

/// Expands one scope, which `n_loops` loops are around.
pub(super) fn expand<'s, 'v>(
    steps: &'s [Step<'v>],
    n_loops: usize,
    tree: &Tree,
    reader: &mut Reader,
) -> Expanded<'s, 'v> {
    let mut expander = Expander {
        tasks: Vec::new(),
        wanted: Vec::new(),
        conditions: Vec::new(),
        groups: Vec::new(),
        group: None,
        ends: BTreeMap::new(),
        work: 0,
    };
    expander.row(steps, Vec::new(), None, &mut Vec::new(), reader);
    expander.resolve(tree, reader);
    if expander.work > WORK {
        let path = steps.first().map_or("$.steps", |step| step.path.as_str());
        reader.error(path, "the branches depend on too many others; join them in one step between");
        expander.tasks.clear();
    }
    check_task_ids(&expander.tasks, tree, reader);
    check_turn_ids(&expander.tasks, n_loops, tree, reader);
    Expanded { tasks: expander.tasks, conditions: expander.conditions, groups: expander.groups }
}

impl<'s, 'v> Expander<'s, 'v> {
    /// Expands steps that follow one another; returns the dependencies of the step after them. Recurses once for each
    /// level of branches, of which there are at most [`limits::DEPTH`].
    fn row(
        &mut self,
        steps: &'s [Step<'v>],
        mut before: Vec<Wanted<'s>>,
        place: Option<(&'s str, usize)>,
        around: &mut Vec<Around<'s>>,
        reader: &mut Reader,
    ) -> Vec<Wanted<'s>> {
        for (i, step) in steps.iter().enumerate() {
            if self.work > WORK {
                return Vec::new();
            }
            let mut wanted = before;
            if let Some(ids) = &step.depend_on {
                wanted = ids.iter().map(|id| named(id, around)).collect();
            }
            before = if step.role == StepRole::Parallel {
                // It has been counted as a node, but is none.
                reader.n_nodes = reader.n_nodes.saturating_sub(1);
                let outer = self.group;
                self.group = Some(self.open_group(step));
                let ends = self.fork(step, &wanted, around, |_| None, reader);
                self.group = outer;
                self.ends.insert(&step.id, ends.clone());
                ends
            } else {
                let task_id = match place {
                    Some((parent, branch)) => format!("{parent}_b{branch}_s{i}"),
                    None => step.id.clone(),
                };
                self.work += wanted.len();
                let need = TaskNeed { task: self.tasks.len(), when: None };
                self.tasks.push(Task { step, task_id, needs: Vec::new(), group: self.group });
                self.wanted.push(wanted);
                let ends = match step.role == StepRole::Branches {
                    true => self.conditional(step, need, around, reader),
                    false => vec![Wanted::Task(need)],
                };
                self.ends.insert(&step.id, ends.clone());
                ends
            };
        }
        before
    }

    fn open_group(&mut self, step: &Step<'_>) -> usize {
        self.groups.push(Group {
            key: step.id.clone(),
            title: step.title.map(str::to_owned),
            label: step.operator.to_owned(),
            place: step.path.clone(),
            outer: self.group,
        });
        self.groups.len() - 1
    }

    /// Expands conditional branches after their node; the next step waits for the node and for every branch.
    fn conditional(
        &mut self,
        step: &'s Step<'v>,
        need: TaskNeed,
        around: &mut Vec<Around<'s>>,
        reader: &mut Reader,
    ) -> Vec<Wanted<'s>> {
        let first = self.conditions.len();
        let mut places = Vec::with_capacity(step.branches.len());
        for branch in &step.branches {
            places.push(branch.condition.as_ref().map(|_| first + places.iter().flatten().count()));
            self.conditions.extend(branch.condition.clone());
        }
        let mut ends = vec![Wanted::Task(need)];
        let inside =
            |branch: usize| Some(Around { id: &step.id, need: TaskNeed { when: places[branch], ..need } });
        ends.extend(self.fork(step, &[], around, inside, reader).into_iter().filter(|end| match end {
            Wanted::Task(end) => end.task != need.task,
            Wanted::Id(_) => true,
        }));
        ends
    }

    /// Expands the branches of a step side by side; returns the ends of all of them.
    fn fork(
        &mut self,
        step: &'s Step<'v>,
        before: &[Wanted<'s>],
        around: &mut Vec<Around<'s>>,
        inside: impl Fn(usize) -> Option<Around<'s>>,
        reader: &mut Reader,
    ) -> Vec<Wanted<'s>> {
        let mut ends = Vec::new();
        let mut has_empty = step.branches.is_empty();
        for (b, StepsBranch { steps, .. }) in step.branches.iter().enumerate() {
            let inside = inside(b);
            if steps.is_empty() {
                // All empty branches end where they began; once is enough.
                has_empty = true;
                continue;
            }
            self.work += before.len();
            let start = match inside {
                Some(around) => vec![Wanted::Task(around.need)],
                None => before.to_vec(),
            };
            around.extend(inside);
            ends.extend(self.row(steps, start, Some((&step.id, b)), around, reader));
            around.truncate(around.len() - usize::from(inside.is_some()));
            if self.work > WORK {
                return Vec::new();
            }
        }
        if has_empty {
            ends.extend_from_slice(before);
        }
        self.work += ends.len();
        ends
    }

    /// Turns names into tasks, now that every step has been met.
    fn resolve(&mut self, tree: &Tree, reader: &mut Reader) {
        let wanted = std::mem::take(&mut self.wanted);
        for (ix, list) in wanted.into_iter().enumerate() {
            if self.work > WORK {
                return;
            }
            let needs = self.needs(list, self.tasks[ix].step, tree, reader);
            if !reader.admit_edges(needs.len(), &self.tasks[ix].step.path) {
                return;
            }
            self.tasks[ix].needs = needs;
        }
    }

    fn needs(
        &mut self,
        list: Vec<Wanted<'s>>,
        step: &Step<'_>,
        tree: &Tree,
        reader: &mut Reader,
    ) -> Vec<TaskNeed> {
        let mut needs: Vec<TaskNeed> = Vec::new();
        let mut at: BTreeMap<usize, usize> = BTreeMap::new();
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut todo: Vec<Wanted<'s>> = list;
        todo.reverse();
        while let Some(wanted) = todo.pop() {
            self.work += 1;
            match wanted {
                Wanted::Task(need) => match at.get(&need.task) {
                    // An unconditional edge makes a condition on the same task moot.
                    Some(known) if need.when.is_none() => needs[*known].when = None,
                    Some(known) if needs[*known].when.is_none() || needs[*known] == need => {}
                    Some(_) | None => {
                        at.insert(need.task, needs.len());
                        needs.push(need);
                    }
                },
                Wanted::Id(id) if !named.insert(id) => {}
                Wanted::Id(id) => match self.ends.get(id) {
                    Some(ends) => todo.extend(ends.iter().rev()),
                    None => self.unknown(id, step, tree, reader),
                },
            }
        }
        needs
    }

    fn unknown(&self, id: &str, step: &Step<'_>, tree: &Tree, reader: &mut Reader) {
        let path = format!("{}.dependOn", step.path);
        match tree.ids.get(id) {
            Some(place) => {
                let reason = format!("step `{}` at {place} is not in the same scope", shown(id));
                reader.error(path, reason);
            }
            None => {
                let reason = format!("unknown step `{}`", shown(id));
                reader.error_near(path, reason, id, self.ends.keys().copied());
            }
        }
    }
}

/// A step that names the conditional node around it means its own branch of it, not the end of all of them.
fn named<'s>(id: &'s str, around: &[Around<'s>]) -> Wanted<'s> {
    match around.iter().find(|around| around.id == id) {
        Some(around) => Wanted::Task(around.need),
        None => Wanted::Id(id),
    }
}

/// A positional id that equals the explicit id of another step would name two tasks.
fn check_task_ids(tasks: &[Task<'_, '_>], tree: &Tree, reader: &mut Reader) {
    for task in tasks.iter().filter(|task| task.task_id != task.step.id) {
        if let Some(place) = tree.ids.get(&task.task_id) {
            let reason =
                format!("the id `{}` is also the position of step `{}`", task.task_id, shown(&task.step.id));
            reader.error(format!("{place}.id"), reason);
        }
    }
}

/// An id that a step of a loop's body has in one of its turns would name two tasks.
fn check_turn_ids(tasks: &[Task<'_, '_>], n_loops: usize, tree: &Tree, reader: &mut Reader) {
    for task in tasks {
        for n in 1..=n_loops {
            let Some(id) = tree.like_turns.get(&(task.task_id.clone(), n)) else { continue };
            let place = tree.ids.get(id).map_or("$", String::as_str);
            let reason =
                format!("the id `{}` is also that of step `{}` in a turn", shown(id), shown(&task.step.id));
            reader.error(format!("{place}.id"), reason);
        }
    }
}
