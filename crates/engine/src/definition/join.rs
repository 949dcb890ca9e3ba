//! Checks of a join scope in every form: no cycles, and no read or write out of order.
//!
//! Everything is linear in nodes and edges but the ancestor sets, which are bit rows: at most 10,000 × 10,000 bits.

use std::collections::{BTreeMap, BTreeSet};

use super::reader::{Reader, shown};
use super::refs::{self, Within};
use crate::limits;
use crate::plan::{Node, NodeIx, When};
use crate::reference::Root;

/// Cycles reported for one scope.
const CYCLES: usize = 10;
/// Nodes of a cycle that are named.
const CYCLE_NODES: usize = 40;

/// Severity of reading a result that does not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlyRead {
    /// The definition is refused.
    Refused,
    /// A warning: missing values are null.
    Warned,
}

/// Counts in-edges and checks the scope. `paths` are the paths of the nodes, `within` the reads from inside them, and
/// `beside` is the severity of reading a node that need not have run before. No form may read a node that always runs
/// later.
pub(super) fn check(
    nodes: &mut [Node],
    paths: &[String],
    within: &[Within],
    beside: EarlyRead,
    reader: &mut Reader,
) {
    count_in_edges(nodes);
    let Some(order) = order(nodes, paths, reader) else { return };
    let reads = reads(nodes, paths, within);
    let writers = writers(nodes, &order);
    if reads.is_empty() && writers.is_empty() {
        return;
    }
    let before = Ancestors::of(nodes, &order);
    for read in reads {
        let has_ended = read.at_end && read.named_ix == read.reader_ix;
        if !has_ended && !before.contains(read.reader_ix, read.named_ix) {
            too_early(&read, nodes, &before, beside, reader);
        }
    }
    clashes(&writers, nodes, paths, &before, reader);
}

/// Reports that something is read which is not there yet, or need not be.
fn too_early(
    read: &OutputRead<'_>,
    nodes: &[Node],
    before: &Ancestors,
    beside: EarlyRead,
    reader: &mut Reader,
) {
    let path = read.path.to_owned();
    if read.named_ix == read.reader_ix {
        let reason = match read.inside {
            true => {
                format!("`{}` has no result yet: this node is inside it", shown(&nodes[read.named_ix].key))
            }
            false => "a node cannot read its own result".to_owned(),
        };
        reader.out_of_order(path, reason, None, EarlyRead::Refused);
        return;
    }
    let name = shown(&nodes[read.named_ix].key);
    let comes_after = before.contains(read.named_ix, read.reader_ix);
    // Whether a node beside this one failed can be of interest, if it is known by then.
    let early = match (comes_after, read.of_output) {
        (true, _) => EarlyRead::Refused,
        (false, true) => beside,
        (false, false) => EarlyRead::Warned,
    };
    let whom = match read.inside {
        true => format!("`{}`", shown(&nodes[read.reader_ix].key)),
        false => "this node".to_owned(),
    };
    let (reason, hint) = if comes_after {
        let after = if read.inside { whom.as_str() } else { "it" };
        let reason = format!("`{name}` cannot have run before this node: it comes after {after}");
        (reason, format!("read the result of a node that comes before, or turn the edges to `{name}`"))
    } else {
        let reason = format!("`{name}` need not have run before this node: its result may be missing here");
        (reason, format!("let {whom} depend on `{name}`"))
    };
    reader.out_of_order(path, reason, Some(hint), early);
}

/// Warns of nodes that may run side by side and write the same.
fn clashes(
    writers: &BTreeMap<String, Vec<NodeIx>>,
    nodes: &[Node],
    paths: &[String],
    before: &Ancestors,
    reader: &mut Reader,
) {
    let mut looks = limits::PROBLEMS;
    for (key, list) in writers {
        // In topological order writers form a chain exactly if each comes before the next.
        let clash = list.windows(2).find(|pair| {
            !before.contains(pair[1], pair[0])
                && !exclude_each_other(pair[0], pair[1], nodes, before, &mut looks)
        });
        if let Some(&[a, b]) = clash {
            let reason = format!(
                "`{}` and this node may run side by side and both write `{}`: the later one wins",
                shown(&nodes[a].key),
                shown(key)
            );
            reader.warning(paths[b].clone(), reason);
        }
    }
}

/// Whether some decision leads to one node with one action and to the other with another. Looks at every edge, so
/// only so many times; after that the benefit of the doubt is given.
fn exclude_each_other(a: NodeIx, b: NodeIx, nodes: &[Node], before: &Ancestors, looks: &mut usize) -> bool {
    if *looks == 0 {
        return true;
    }
    *looks -= 1;
    let leads = |from: NodeIx, to: NodeIx| from == to || before.contains(to, from);
    nodes.iter().any(|node| {
        let (mut for_a, mut for_b): (BTreeSet<&str>, BTreeSet<&str>) = (BTreeSet::new(), BTreeSet::new());
        for edge in &node.out {
            let Some(to) = edge.to else { continue };
            match &edge.when {
                When::Action(action) if leads(to, a) && !leads(to, b) => drop(for_a.insert(action)),
                When::Action(action) if leads(to, b) && !leads(to, a) => drop(for_b.insert(action)),
                When::Action(_) | When::Always | When::If(_) => {}
            }
        }
        !for_a.is_empty() && !for_b.is_empty() && for_a.is_disjoint(&for_b)
    })
}

fn count_in_edges(nodes: &mut [Node]) {
    let mut counts = vec![0_usize; nodes.len()];
    for edge in nodes.iter().flat_map(|node| &node.out) {
        if let Some(to) = edge.to {
            counts[to] += 1;
        }
    }
    for (node, n_in) in nodes.iter_mut().zip(counts) {
        node.n_in = n_in;
    }
}

/// The nodes so that every edge leads forwards; reports the cycles if there is no such order.
fn order(nodes: &[Node], paths: &[String], reader: &mut Reader) -> Option<Vec<NodeIx>> {
    let mut waiting: Vec<usize> = nodes.iter().map(|node| node.n_in).collect();
    let mut settled = vec![false; nodes.len()];
    let mut order: Vec<NodeIx> = Vec::with_capacity(nodes.len());
    let mut ready: Vec<NodeIx> = (0..nodes.len()).rev().filter(|ix| waiting[*ix] == 0).collect();
    let mut n_cycles = 0;
    loop {
        while let Some(ix) = ready.pop() {
            if std::mem::replace(&mut settled[ix], true) {
                continue;
            }
            order.push(ix);
            for to in nodes[ix].out.iter().filter_map(|edge| edge.to) {
                waiting[to] = waiting[to].saturating_sub(1);
                if waiting[to] == 0 {
                    ready.push(to);
                }
            }
        }
        if order.len() == nodes.len() || n_cycles == CYCLES {
            break;
        }
        // The remaining nodes wait for themselves. One cycle is reported and removed, so that the next can be found.
        let Some(cycle) = cycle(nodes, &settled) else { break };
        n_cycles += 1;
        reader.error(paths[cycle[0]].clone(), format!("cycle: {}", spelled(nodes, &cycle)));
        ready.extend(cycle);
    }
    (n_cycles == 0).then_some(order)
}

/// Some cycle among the nodes that are not settled, from its first node on.
fn cycle(nodes: &[Node], settled: &[bool]) -> Option<Vec<NodeIx>> {
    let mut before: Vec<Option<NodeIx>> = vec![None; nodes.len()];
    for (ix, node) in nodes.iter().enumerate().filter(|(ix, _)| !settled[*ix]) {
        for to in node.out.iter().filter_map(|edge| edge.to).filter(|to| !settled[*to]) {
            before[to] = Some(ix);
        }
    }
    // Every unsettled node has an unsettled one before it, so walking back must meet itself.
    let mut at = (0..nodes.len()).find(|ix| before[*ix].is_some())?;
    let mut seen = vec![false; nodes.len()];
    while !std::mem::replace(&mut seen[at], true) {
        at = before[at]?;
    }
    let mut cycle = vec![at];
    let mut back = before[at]?;
    while back != at {
        cycle.push(back);
        back = before[back]?;
    }
    cycle.reverse();
    let first = cycle.iter().enumerate().min_by_key(|(_, ix)| **ix).map_or(0, |(at, _)| at);
    cycle.rotate_left(first);
    Some(cycle)
}

fn spelled(nodes: &[Node], cycle: &[NodeIx]) -> String {
    let mut names: Vec<String> = cycle.iter().take(CYCLE_NODES).map(|ix| shown(&nodes[*ix].key)).collect();
    if cycle.len() > CYCLE_NODES {
        names.push(format!("… ({} more)", cycle.len() - CYCLE_NODES));
    }
    names.extend(cycle.first().map(|ix| shown(&nodes[*ix].key)));
    names.join(" → ")
}

/// One read: the reader, the node that it reads, and the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OutputRead<'a> {
    reader_ix: NodeIx,
    named_ix: NodeIx,
    /// An edge reads it when the node has ended.
    at_end: bool,
    /// The result, not the status or the error.
    of_output: bool,
    /// A node inside the reader reads it.
    inside: bool,
    path: &'a str,
}

fn reads<'a>(nodes: &[Node], paths: &'a [String], within: &'a [Within]) -> Vec<OutputRead<'a>> {
    let index: BTreeMap<&str, NodeIx> =
        nodes.iter().enumerate().map(|(ix, n)| (n.key.as_str(), ix)).collect();
    let mut reads = Vec::new();
    for (reader_ix, node) in nodes.iter().enumerate() {
        let own = refs::of_node(node).into_iter().map(|reference| (reference, false));
        let edges = node.out.iter().filter_map(|edge| match &edge.when {
            When::If(condition) => Some(condition.refs()),
            When::Always | When::Action(_) => None,
        });
        for (reference, at_end) in own.chain(edges.flatten().map(|reference| (reference, true))) {
            let Some(named_ix) = reference.node().and_then(|name| index.get(name).copied()) else { continue };
            let of_output = matches!(reference.root, Root::Output(_));
            let path = paths[reader_ix].as_str();
            reads.push(OutputRead { reader_ix, named_ix, at_end, of_output, inside: false, path });
        }
    }
    for Within { reader_ix, read } in within {
        let Some(named_ix) = index.get(read.name.as_str()).copied() else { continue };
        if named_ix != *reader_ix || refs::is_hidden_inside(&nodes[named_ix], read.of_output) {
            reads.push(OutputRead {
                reader_ix: *reader_ix,
                named_ix,
                at_end: false,
                of_output: read.of_output,
                inside: true,
                path: &read.path,
            });
        }
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// Shared keys with more than one writer, the writers in topological order.
fn writers(nodes: &[Node], order: &[NodeIx]) -> BTreeMap<String, Vec<NodeIx>> {
    let mut writers: BTreeMap<String, Vec<NodeIx>> = BTreeMap::new();
    for ix in order {
        for key in refs::writes(&nodes[*ix]) {
            let list = writers.entry(key.to_owned()).or_default();
            if list.last() != Some(ix) {
                list.push(*ix);
            }
        }
    }
    writers.retain(|_, list| list.len() > 1);
    writers
}

/// For every node, the set of nodes that end before it starts.
struct Ancestors {
    rows: Vec<u64>,
    words: usize,
}

impl Ancestors {
    fn of(nodes: &[Node], order: &[NodeIx]) -> Ancestors {
        let words = nodes.len().div_ceil(64);
        let mut rows = vec![0_u64; words * nodes.len()];
        for &ix in order {
            let mut row = rows[ix * words..(ix + 1) * words].to_vec();
            row[ix / 64] |= 1 << (ix % 64);
            for to in nodes[ix].out.iter().filter_map(|edge| edge.to) {
                for (mine, theirs) in rows[to * words..(to + 1) * words].iter_mut().zip(&row) {
                    *mine |= theirs;
                }
            }
        }
        Ancestors { rows, words }
    }

    fn contains(&self, of: NodeIx, ancestor: NodeIx) -> bool {
        self.rows[of * self.words + ancestor / 64] & (1 << (ancestor % 64)) != 0
    }
}
