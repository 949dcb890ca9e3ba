//! `windlass examples`: the example flows of the server's program.

use anyhow::Result;
use clap::Subcommand;
use windlass_sdk::contract::ExampleNames;

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::session::GlobalArgs;

#[derive(Subcommand)]
pub(crate) enum ExampleCommand {
    /// Lists the examples.
    #[command(after_help = help!("  windlass examples list", SHOW_EXITS))]
    List,
    /// Publishes examples; flows that are there already are kept.
    #[command(after_help = help!("  windlass examples load\n  windlass examples load graph/branching", CHANGE_EXITS))]
    Load {
        /// The names of the examples [default: all].
        names: Vec<String>,
    },
}

pub(crate) async fn run(command: ExampleCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    match command {
        ExampleCommand::List => {
            let examples = session.client.flows().examples().await?.items;
            let row = |example: &windlass_sdk::contract::ExampleInfo| {
                [example.name.clone(), if example.loaded { "yes" } else { "no" }.to_owned()]
            };
            session.out.list(["example", "loaded"], &examples, |example| example.name.clone(), row)?;
        }
        ExampleCommand::Load { names } => {
            let asked = ExampleNames { names: (!names.is_empty()).then_some(names) };
            let loaded = session.client.flows().load_examples(&asked).await?;
            session.out.value(&loaded, "", || {
                let published =
                    loaded.published.iter().map(|flow| format!("{} v{}\n", flow.name, flow.version));
                let kept = loaded.kept.iter().map(|name| format!("{name} (it was there)\n"));
                published.chain(kept).collect()
            })?;
        }
    }
    Ok(Exit::Done)
}
