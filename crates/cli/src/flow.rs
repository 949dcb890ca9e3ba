//! `windlass flow`: definitions on this machine, and flows on a server.
//!
//! `validate`, `expand` and `graph` of a file need no server.

mod drawing;
mod place;
mod publish;
mod read;
mod shelf;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use windlass_sdk::types::FlowsQuery;

use crate::session::Options;

pub(crate) use publish::ensure;
pub(crate) use read::read;
pub(crate) use shelf::change_line;

/// What a definition with errors ends a command with.
pub(crate) const BAD_DEFINITION: u8 = 2;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Publishes definitions: a new flow, or the next version of one that is there.
    ///
    /// A definition that is already the newest version is left alone. The name of the flow is that of its file,
    /// without the ending, unless --name says otherwise.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow apply examples/graph/branching.json\n",
        "  windlass flow apply --name orders --note 'retries' orders.yaml\n",
        "  windlass flow apply --dry-run flows/*.yaml\n\n",
        "Exit codes:\n",
        "  0  published, or already so\n",
        "  1  a file could not be read, or the server refused\n",
        "  2  a definition has errors",
    ))]
    Apply(publish::Apply),
    /// Reports everything that is wrong with definitions, one problem a line: `file:line:col: severity: reason`.
    ///
    /// Places are given as line and column where they can be found, and always as a path into the definition.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow validate examples/graph/branching.json\n",
        "  windlass flow validate -o json flows/*.yaml\n\n",
        "Exit codes:\n",
        "  0  no errors (there may be warnings)\n",
        "  1  a file could not be read\n",
        "  2  a definition has errors",
    ))]
    Validate {
        /// Definitions, JSON or YAML.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Take fields nobody knows as warnings instead of errors.
        #[arg(long)]
        lenient: bool,
    },
    /// Lists flows, newest first.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow list\n",
        "  windlass flow list --search order -o json\n\n",
        "Exit codes:\n  0  listed\n  1  the server could not be asked",
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
        /// At most so many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Makes a flow of a template, with values as the defaults of its variables.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow instantiate digital-human greeting --set text='Good morning'\n",
        "  windlass flow list --templates\n\n",
        "Exit codes:\n  0  made\n  1  refused, or there is no such template\n  3  the server could not be asked",
    ))]
    Instantiate(shelf::Instantiate),
    /// Shows a flow with its newest published definition, or with another one.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow show graph/branching\n",
        "  windlass flow show orders --version 3 -o yaml\n\n",
        "Exit codes:\n  0  shown\n  1  there is no such flow, or the server could not be asked",
    ))]
    Show(Which),
    /// Lists the versions of a flow, newest first.
    #[command(after_help = concat!(
        "Example:\n  windlass flow versions orders\n\n",
        "Exit codes:\n  0  listed\n  1  there is no such flow, or the server could not be asked",
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
        "Exit codes:\n  0  shown\n  1  there is no such version, or the server could not be asked",
    ))]
    Diff {
        /// The name or the id of the flow.
        flow: String,
        /// The older version; the one before the newer unless named.
        from: Option<u32>,
        /// The newer version; the newest unless named.
        to: Option<u32>,
    },
    /// Prints the tasks that a definition of the steps form becomes, with what each depends on, as JSON.
    #[command(after_help = concat!(
        "Example:\n",
        "  windlass flow expand examples/steps/parallel-documents.json\n\n",
        "Exit codes:\n",
        "  0  expanded\n",
        "  1  the file could not be read\n",
        "  2  the definition has errors or another form",
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
        "  windlass flow graph --dot orders | dot -Tsvg > orders.svg\n\n",
        "Exit codes:\n",
        "  0  drawn\n",
        "  1  there is no such file or flow\n",
        "  2  the definition has errors",
    ))]
    Graph {
        #[command(flatten)]
        which: Which,
        /// Lines and arrows (this is the default).
        #[arg(long, conflicts_with = "dot")]
        ascii: bool,
        /// The language of Graphviz.
        #[arg(long)]
        dot: bool,
    },
}

/// A version of a flow.
#[derive(Args)]
pub(crate) struct Which {
    /// The name or the id of the flow; for drawings a file does as well.
    flow: String,
    /// The number of the version; the newest published one unless named.
    #[arg(long)]
    version: Option<u32>,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    match command {
        Command::Apply(apply) => publish::apply(&apply, &options.session()?).await,
        Command::Validate { files, lenient } => validate::validate(&files, lenient, &options.print()),
        Command::List { search, label, templates, limit } => {
            let query = FlowsQuery {
                q: search,
                label,
                is_template: templates.then_some(true),
                ..FlowsQuery::default()
            };
            shelf::list(query, limit, &options.session()?).await
        }
        Command::Instantiate(new) => shelf::instantiate(new, &options.session()?).await,
        Command::Show(which) => shelf::show(&which, &options.session()?).await,
        Command::Versions { flow } => shelf::versions(&flow, &options.session()?).await,
        Command::Diff { flow, from, to } => shelf::diff(&flow, from, to, &options.session()?).await,
        Command::Expand { file } => validate::expand(&file),
        Command::Graph { which, ascii: _, dot } => drawing::graph(&which, dot, options).await,
    }
}
