//! `windlass flow`: definitions in files, and flows on a server.
//!
//! `validate`, `expand` and `graph` of a file need no server.

mod graph;
mod publish;
mod published;
mod read;
mod validate;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use windlass_sdk::contract::FlowsQuery;

use crate::exit::Exit;
use crate::session::GlobalArgs;

pub(crate) use publish::ensure;
pub(crate) use published::change_line;
pub(crate) use read::read;

#[derive(Subcommand)]
pub(crate) enum FlowCommand {
    /// Publishes definitions: a new flow, or the next version of an existing one.
    ///
    /// A definition that equals the newest version is left alone. The name of the flow is that of its file without the
    /// ending, or --name.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow apply examples/graph/branching.json\n",
        "  windlass flow apply --name orders --note 'retries' orders.yaml\n",
        "  windlass flow apply --dry-run flows/*.yaml\n\n",
        "Exit codes:\n",
        "  0  published, or unchanged\n",
        "  1  a file cannot be read, or the server refused\n",
        "  4  a definition has errors",
    ))]
    Apply(publish::FlowApplyArgs),
    /// Reports all problems of definitions, one a line: `file:line:col: severity: reason`.
    ///
    /// A problem has a line and a column where they are known, and always a path into the definition.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow validate examples/graph/branching.json\n",
        "  windlass flow validate -o json flows/*.yaml\n\n",
        "Exit codes:\n",
        "  0  no errors (there may be warnings)\n",
        "  1  a file cannot be read\n",
        "  4  a definition has errors",
    ))]
    Validate {
        /// Definitions, JSON or YAML.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Report unknown fields as warnings instead of errors.
        #[arg(long)]
        lenient: bool,
    },
    /// Lists flows, newest first.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow list\n",
        "  windlass flow list --search order -o json\n\n",
        "Exit codes:\n  0  listed\n  3  the server cannot be reached",
    ))]
    List {
        /// Only flows with this in their name or description.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only flows with this label: `key` or `key=value`.
        #[arg(long)]
        label: Option<String>,
        /// Only templates.
        #[arg(long)]
        templates: bool,
        /// The number of flows at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Creates a flow from a template, with new defaults of its variables.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow instantiate digital-human greeting --set text='Good morning'\n",
        "  windlass flow list --templates\n\n",
        "Exit codes:\n  0  created\n  1  refused, or there is no such template\n  3  the server cannot be reached",
    ))]
    Instantiate(published::FlowInstantiateArgs),
    /// Shows a flow with its newest published definition, or with another one.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow show graph/branching\n",
        "  windlass flow show orders --version 3 -o yaml\n\n",
        "Exit codes:\n  0  shown\n  1  there is no such flow\n  3  the server cannot be reached",
    ))]
    Show(FlowSelector),
    /// Lists the versions of a flow, newest first.
    #[command(after_help = concat!(
        "Example:\n  windlass flow versions orders\n\n",
        "Exit codes:\n  0  listed\n  1  there is no such flow\n  3  the server cannot be reached",
    ))]
    Versions {
        /// The name or the id of the flow.
        flow: String,
    },
    /// Shows how two versions of a flow differ.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow diff orders        the newest and the one before it\n",
        "  windlass flow diff orders 2 5\n\n",
        "Exit codes:\n  0  shown\n  1  there is no such version\n  3  the server cannot be reached",
    ))]
    Diff {
        /// The name or the id of the flow.
        flow: String,
        /// The older version [default: the one before the newer].
        from: Option<u32>,
        /// The newer version [default: the newest].
        to: Option<u32>,
    },
    /// Prints the tasks of a definition of the steps form, with their dependencies, as JSON.
    #[command(after_help = concat!(
        "Example:\n",
        "  windlass flow expand examples/steps/parallel-documents.json\n\n",
        "Exit codes:\n",
        "  0  expanded\n",
        "  1  the file cannot be read\n",
        "  4  the definition has errors or another form",
    ))]
    Expand {
        /// A definition of the steps form, JSON or YAML.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Draws a definition: a file, or a flow on the server.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow graph examples/graph/branching.json\n",
        "  windlass flow graph --dir tb examples/steps/nested.json\n",
        "  windlass flow graph --svg orders > orders.svg\n",
        "  windlass flow graph --svg orders --run run_01a1… > orders-run.svg\n",
        "  windlass flow graph --dot orders | dot -Tsvg > orders.svg\n\n",
        "Exit codes:\n",
        "  0  drawn\n",
        "  1  there is no such file, flow or run\n",
        "  4  the definition has errors",
    ))]
    Graph(graph::FlowGraphArgs),
}

/// A version of a flow.
#[derive(Args)]
pub(crate) struct FlowSelector {
    /// The name or the id of the flow; `graph` takes a file too.
    flow: String,
    /// The version [default: the newest published one].
    #[arg(long)]
    version: Option<u32>,
}

pub(crate) async fn run(command: FlowCommand, options: &GlobalArgs) -> Result<Exit> {
    match command {
        FlowCommand::Apply(apply) => publish::apply(&apply, &options.session()?).await,
        FlowCommand::Validate { files, lenient } => validate::validate(&files, lenient, &options.print()),
        FlowCommand::List { search, label, templates, limit } => {
            let query = FlowsQuery {
                q: search,
                label,
                is_template: templates.then_some(true),
                ..FlowsQuery::default()
            };
            published::list(query, limit, &options.session()?).await
        }
        FlowCommand::Instantiate(new) => published::instantiate(new, &options.session()?).await,
        FlowCommand::Show(which) => published::show(&which, &options.session()?).await,
        FlowCommand::Versions { flow } => published::versions(&flow, &options.session()?).await,
        FlowCommand::Diff { flow, from, to } => published::diff(&flow, from, to, &options.session()?).await,
        FlowCommand::Expand { file } => validate::expand(&file),
        FlowCommand::Graph(asked) => graph::graph(&asked, options).await,
    }
}
