//! `windlass overview`: the numbers of the console's first page, and the things that need a person.

use anyhow::Result;
use windlass_sdk::contract::{AttentionItem, Overview, TileCount};

use crate::exit::Exit;
use crate::output;
use crate::session::GlobalArgs;

pub(crate) async fn run(options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    let overview = session.client.overview().await?;
    session.out.value(&overview, "", || text(&overview))?;
    Ok(Exit::Done)
}

fn count(tile: TileCount) -> String {
    format!("{}{}", tile.count, if tile.more { "+" } else { "" })
}

fn text(overview: &Overview) -> String {
    let tiles = &overview.tiles;
    let workers = tiles.workers;
    let mut text = output::facts([
        ("running", count(tiles.running)),
        ("queued", count(tiles.queued)),
        ("waiting", count(tiles.waiting)),
        ("failed in 24 h", count(tiles.failed_24h)),
        ("dead letters", count(tiles.dead_letters)),
        ("approvals", count(tiles.approvals)),
        (
            "workers",
            format!("{} online, {} stale, {} draining", workers.online, workers.stale, workers.draining),
        ),
    ]);
    if overview.attention.is_empty() {
        return text + "nothing needs attention\n";
    }
    text += "\nneeds attention\n";
    let line = |AttentionItem { text, command, .. }: &AttentionItem| match command {
        Some(command) => format!("  {text}: {command}\n"),
        None => format!("  {text}\n"),
    };
    text + &overview.attention.iter().map(line).collect::<String>()
}
