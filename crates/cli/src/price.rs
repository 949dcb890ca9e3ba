//! `windlass price`: sets and shows the prices of services.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::contract::{NewPrice, PriceInfo};

use crate::amount::amount;
use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::output;
use crate::run::json_or_text;
use crate::session::{GlobalArgs, Session, from_now};

#[derive(Subcommand)]
pub(crate) enum PriceCommand {
    /// Sets the price of a service: the unit price times the units.
    ///
    /// It holds for runs that start and jobs that are created afterwards.
    #[command(after_help = help!(
        "  windlass price set thumbnail 5\n  \
           windlass price set audio_tts 2 --units '$params.seconds' --actual '$result.seconds' --min 10",
        CHANGE_EXITS
    ))]
    Set(PriceSetArgs),
    /// Lists the prices of services.
    #[command(after_help = help!("  windlass price list\n  windlass price list -o json", SHOW_EXITS))]
    List,
    /// Shows the price of a service.
    #[command(after_help = help!("  windlass price show audio_tts", SHOW_EXITS))]
    Show {
        /// The name of the service.
        service: String,
    },
    /// Deletes the price of a service. Runs and jobs that exist keep the price of their start.
    #[command(after_help = help!("  windlass price delete audio_tts", CHANGE_EXITS))]
    Delete {
        /// The name of the service.
        service: String,
    },
}

#[derive(Args)]
pub(crate) struct PriceSetArgs {
    /// The name of the service, or of the jobs.
    service: String,
    /// The price of one unit, in whole numbers of the smallest unit of money: 1250 for 12.50.
    #[arg(allow_negative_numbers = true, value_parser = amount)]
    unit_price: i64,
    /// The estimated units of a call: a number, or a reference such as $params.seconds [default: 1].
    #[arg(long, value_name = "NUMBER|REFERENCE", value_parser = json_or_text)]
    units: Option<Value>,
    /// The actual units, which may be in $result [default: as estimated].
    #[arg(long, value_name = "NUMBER|REFERENCE", value_parser = json_or_text)]
    actual: Option<Value>,
    /// The least units that are charged.
    #[arg(long, value_name = "UNITS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    min: i64,
}

pub(crate) async fn run(command: PriceCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        PriceCommand::Set(PriceSetArgs { service, unit_price, units, actual, min }) => {
            let price = NewPrice { unit_price, min_unit: min, units, actual_units: actual };
            print_price(&client.prices().set(&service, &price).await?, session)
        }
        PriceCommand::List => list(session).await,
        PriceCommand::Show { service } => print_price(&client.prices().show(&service).await?, session),
        PriceCommand::Delete { service } => {
            let deleted = client.prices().delete(&service).await?;
            session.out.value(&deleted, &service, || format!("{service} has no price any more"))?;
            Ok(Exit::Done)
        }
    }
}

async fn list(session: &Session) -> Result<Exit> {
    let prices = session.client.prices().all().await?;
    let row = |price: &PriceInfo| {
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
    Ok(Exit::Done)
}

/// Shows one price.
fn print_price(price: &PriceInfo, session: &Session) -> Result<Exit> {
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
    Ok(Exit::Done)
}

/// A number or a reference, as it was given.
fn plain(units: Option<&Value>) -> String {
    match units {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
