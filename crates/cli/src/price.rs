//! `windlass price`: what services ask.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::types::{NewPrice, PageQuery, Price};

use crate::help::help;
use crate::output;
use crate::run::json_or_text;
use crate::session::{Options, Session, from_now};

/// Prices on one page.
const PAGE: usize = 1_000;

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  the service has no price\n  3  the server could not be asked";
const ACTS: &str = "Exit codes:\n  0  done\n  1  refused\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Sets what a service asks: the unit price times the units, in whole minor units.
    ///
    /// It counts for runs that start, and for jobs that are created, afterwards.
    #[command(after_help = help!(
        "  windlass price set thumbnail 5\n  \
           windlass price set audio_tts 2 --units '$params.seconds' --actual '$result.seconds' --min 10",
        ACTS
    ))]
    Set(Set),
    /// Lists what services ask.
    #[command(after_help = help!("  windlass price list\n  windlass price list -o json", LOOKS))]
    List,
    /// Shows what a service asks.
    #[command(after_help = help!("  windlass price show audio_tts", LOOKS))]
    Show {
        /// The name of the service.
        service: String,
    },
    /// Asks nothing for a service any more; what has begun costs what it cost when it began.
    #[command(after_help = help!("  windlass price delete audio_tts", ACTS))]
    Delete {
        /// The name of the service.
        service: String,
    },
}

#[derive(Args)]
pub(crate) struct Set {
    /// The name of the service, or of the jobs.
    service: String,
    /// What one unit costs.
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..))]
    unit_price: i64,
    /// How many units a call will take: a number, or a reference such as $params.seconds. 1 unless given.
    #[arg(long, value_name = "NUMBER|REFERENCE", value_parser = json_or_text)]
    units: Option<Value>,
    /// How many units it took, which may be in $result; as many as estimated unless given.
    #[arg(long, value_name = "NUMBER|REFERENCE", value_parser = json_or_text)]
    actual: Option<Value>,
    /// So many units are paid for at least.
    #[arg(long, value_name = "UNITS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    min: i64,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        Command::Set(Set { service, unit_price, units, actual, min }) => {
            let price = NewPrice { unit_price, min_unit: min, units, actual_units: actual };
            told(&client.set_price(&service, &price).await?, session)
        }
        Command::List => list(session).await,
        Command::Show { service } => told(&client.price(&service).await?, session),
        Command::Delete { service } => {
            let deleted = client.delete_price(&service).await?;
            session.out.value(&deleted, &service, || format!("{service} asks nothing any more"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(session: &Session) -> Result<ExitCode> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE) };
    let mut prices = Vec::new();
    loop {
        let part = session.client.prices(&page).await?;
        prices.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let row = |price: &Price| {
        [
            price.service.clone(),
            price.unit_price.to_string(),
            price.min_unit.to_string(),
            plain(Some(&price.units)),
            plain(price.actual_units.as_ref()),
            from_now(price.updated_at),
        ]
    };
    session.out.list(
        ["service", "unit price", "least units", "units", "actual units", "set"],
        &prices,
        |price| price.service.clone(),
        row,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Shows one price.
fn told(price: &Price, session: &Session) -> Result<ExitCode> {
    session.out.value(price, &price.service, || {
        let facts = output::facts([
            ("unit price", price.unit_price.to_string()),
            ("least units", price.min_unit.to_string()),
            ("units", plain(Some(&price.units))),
            ("actual units", plain(price.actual_units.as_ref())),
            ("set", from_now(price.updated_at)),
        ]);
        format!("{}\n{facts}", price.service)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A number or a reference, as it was given.
fn plain(units: Option<&Value>) -> String {
    match units {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
