//! `windlass account`: who pays. Amounts are whole minor units: cents, fen.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use windlass_sdk::types::{Account, Deposit, LedgerEntry, LedgerQuery, LineOrder, NewAccount, PageQuery};
use windlass_sdk::worker::unique_id;

use crate::help::help;
use crate::output;
use crate::session::{Options, Session, from_now};

/// Rows on one page.
const PAGE: usize = 1_000;

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  there is no such account\n  3  the server could not be asked";
const ACTS: &str = "Exit codes:\n  0  done\n  1  refused\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Opens an account; one that is there is shown as it is.
    #[command(after_help = help!("  windlass account open acme\n  windlass account open acme --name 'Acme Ltd'", ACTS))]
    Open {
        /// What runs and jobs name as their account.
        id: String,
        /// For people; the id unless given.
        #[arg(long)]
        name: Option<String>,
    },
    /// Lists accounts with what they have.
    #[command(after_help = help!("  windlass account list\n  windlass account list -o json", LOOKS))]
    List,
    /// Shows an account.
    #[command(after_help = help!("  windlass account show acme", LOOKS))]
    Show {
        /// The id of the account.
        id: String,
    },
    /// Puts money into an account; runs that wait for it go on.
    #[command(after_help = help!(
        "  windlass account deposit acme 5000\n  windlass account deposit acme 5000 --key invoice-7", ACTS
    ))]
    Deposit {
        /// The id of the account.
        id: String,
        /// How much, in whole minor units.
        #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..))]
        amount: i64,
        /// Names the payment: the same key again puts nothing in again. A new one unless given.
        #[arg(long)]
        key: Option<String>,
    },
    /// Lists what happened to an account, newest first.
    #[command(after_help = help!(
        "  windlass account ledger acme\n  windlass account ledger acme --run run_0190a1b2 --order oldest", LOOKS
    ))]
    Ledger(Ledger),
}

#[derive(Args)]
pub(crate) struct Ledger {
    /// The id of the account.
    id: String,
    /// Only what happened because of this run.
    #[arg(long)]
    run: Option<String>,
    /// Which end comes first.
    #[arg(long, value_enum, default_value = "newest")]
    order: Order,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Newest,
    Oldest,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        Command::Open { id, name } => told(&client.open_account(&NewAccount { id, name }).await?, session),
        Command::List => list(session).await,
        Command::Show { id } => told(&client.account(&id).await?, session),
        Command::Deposit { id, amount, key } => {
            let key = key.unwrap_or_else(|| unique_id("deposit"));
            let deposited = client.deposit(&id, &Deposit { amount, key }).await?;
            session.out.value(&deposited, &deposited.account.id, || {
                let before = if deposited.created { "" } else { "was made before: " };
                let balance = deposited.account.balance;
                format!("{before}{amount} into {id}, which has {balance} now")
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Ledger(asked) => ledger(asked, session).await,
    }
}

async fn list(session: &Session) -> Result<ExitCode> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE) };
    let mut accounts = Vec::new();
    loop {
        let part = session.client.accounts(&page).await?;
        accounts.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let row = |account: &Account| {
        let Account { id, name, balance, held, created_at } = account;
        [id.clone(), name.clone(), balance.to_string(), held.to_string(), from_now(*created_at)]
    };
    session.out.list(
        ["account", "name", "balance", "held", "opened"],
        &accounts,
        |account| account.id.clone(),
        row,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Shows one account as it is now.
fn told(account: &Account, session: &Session) -> Result<ExitCode> {
    session.out.value(account, &account.id, || {
        let facts = output::facts([
            ("name", account.name.clone()),
            ("balance", account.balance.to_string()),
            ("held", account.held.to_string()),
            ("opened", from_now(account.created_at)),
        ]);
        format!("{}\n{facts}", account.id)
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn ledger(asked: Ledger, session: &Session) -> Result<ExitCode> {
    let run = match &asked.run {
        Some(run) => Some(session.run_id(run).await?),
        None => None,
    };
    let order = match asked.order {
        Order::Newest => LineOrder::Newest,
        Order::Oldest => LineOrder::Oldest,
    };
    let limit = asked.limit as usize;
    let mut query = LedgerQuery { run, order: Some(order), cursor: None, limit: None };
    let mut entries: Vec<LedgerEntry> = Vec::new();
    let more = loop {
        query.limit = Some(PAGE.min(limit - entries.len()));
        let part = session.client.ledger(&asked.id, &query).await?;
        entries.extend(part.items);
        match part.next {
            Some(next) if entries.len() < limit => query.cursor = Some(next),
            next => break next.is_some(),
        }
    };
    session.out.list(
        ["seq", "when", "kind", "amount", "balance", "what"],
        &entries,
        |entry| entry.key.clone(),
        row,
    )?;
    if more {
        output::message("there may be more: ask with a higher --limit");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &LedgerEntry) -> [String; 6] {
    let mut what = match (&entry.run, &entry.node, &entry.task) {
        (Some(run), Some(node), _) => format!("{run}/{node}"),
        (Some(run), None, _) => run.clone(),
        (None, _, Some(task)) => format!("job {task}"),
        (None, _, None) => entry.key.clone(),
    };
    if entry.borne_by_platform > 0 {
        what.push_str(&format!(" (cost {} more than was charged)", entry.borne_by_platform));
    }
    let amount = if entry.amount > 0 { format!("+{}", entry.amount) } else { entry.amount.to_string() };
    let (seq, at) = (entry.seq.to_string(), from_now(entry.at));
    [seq, at, entry.kind.clone(), amount, entry.balance_after.to_string(), what]
}
