//! A limit on everything: the numbers in one place, each with its reason.

/// Text of a definition. Larger ones are refused before they are parsed.
pub const DEFINITION_BYTES: usize = 4 << 20;
/// Nodes in one definition, all nested scopes counted. A plan of this size compiles in well under a second.
pub const NODES: usize = 10_000;
/// Edges in one definition, all nested scopes counted.
pub const EDGES: usize = 50_000;
/// Scopes inside scopes. Every walk of a plan recurses at most this deep.
pub const DEPTH: usize = 32;
/// Branches of steps inside branches: each level takes four levels of the text, of which a parser reads 128.
pub const NESTED_BRANCHES: usize = 24;
/// Bytes of a node key, a step id, a service name, an action, a signal key.
pub const NAME_BYTES: usize = 255;
/// Levels of one value that comes into a run or is put together in it. Together with the levels that a journal entry
/// and nested containers add, everything stored stays readable.
pub const VALUE_DEPTH: usize = 64;
/// Bytes of one value, and of the shared state of one scope.
pub const SHARED_BYTES: usize = 8 << 20;
/// Bytes of a layer of parameters up to which rows hold it inline. A larger layer is stored once, as a blob: a reference
/// to it is shorter than most parameters, and a row of a small run needs no second table.
pub const INLINE_PARAMS_BYTES: usize = 4 << 10;
/// The tree of a JSON text may take this many times the bytes of the text: with the text itself and one copy of it, a
/// request takes less than ten times its bytes.
pub const TREE_TIMES: usize = 6;
/// The tree of a small JSON text may take this many bytes in any case: a list of 20,000 small objects is no attack.
pub const TREE_BYTES: usize = 16 << 20;
/// Branches of one fan.
pub const FAN_BRANCHES: usize = 100_000;
/// Entries into nodes in one run, branches of fans not counted: the limit that stops an endless cycle.
pub const VISITS: u64 = 50_000;
/// Characters of one expression: conditions are sentences, not programs.
pub const EXPRESSION_CHARS: usize = 4_096;
/// Nesting inside one expression; evaluation recurses this deep at most.
pub const EXPRESSION_DEPTH: usize = 32;
/// Steps of one condition of the graph and the steps form (see `meter`): the largest text is searched seven times. The
/// evaluation of a condition cannot be interrupted and goes on later.
pub const CONDITION_STEPS: usize = 2_000_000;
/// Steps of one decision, which is then committed before the run goes on: a few milliseconds, or some thousand visits.
pub const SLICE_STEPS: u64 = 50_000;
/// Problems reported for one definition: more would not help its author.
pub const PROBLEMS: usize = 200;
/// Bytes of an error message that is kept with an attempt.
pub const ERROR_BYTES: usize = 4_096;
/// The soonest and the latest that a suspended call is asked again, where an author says when: often enough to follow,
/// seldom enough not to be a burden, and within a day.
pub const RECHECK_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;
/// Signals remembered by id for deduplication, per run; the oldest are forgotten first.
pub const SIGNAL_IDS: usize = 1_000;
