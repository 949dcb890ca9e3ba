//! `windlass account`: opens accounts, deposits money and shows ledgers.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use windlass_sdk::contract::{
    AccountInfo, DepositRequest, LedgerEntry, LedgerListQuery, ListOrder, NewAccount, PageQuery,
};
use windlass_sdk::worker::unique_id;

use crate::amount::positive_amount;
use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::output;
use crate::session::{GlobalArgs, Session, from_now, native_job_id};

/// Rows of one page.
const PAGE_SIZE: usize = 1_000;

#[derive(Subcommand)]
pub(crate) enum AccountCommand {
    /// Opens an account; an open one is shown unchanged.
    #[command(after_help = help!("  windlass account open acme\n  windlass account open acme --name 'Acme Ltd'", CHANGE_EXITS))]
    Open {
        /// The id, by which runs and jobs name the account.
        id: String,
        /// The name [default: the id].
        #[arg(long)]
        name: Option<String>,
    },
    /// Lists accounts with their balances.
    #[command(after_help = help!("  windlass account list\n  windlass account list -o json", SHOW_EXITS))]
    List,
    /// Shows an account.
    #[command(after_help = help!("  windlass account show acme", SHOW_EXITS))]
    Show {
        /// The id of the account.
        id: String,
    },
    /// Deposits money; runs that wait for it go on.
    #[command(after_help = help!(
        "  windlass account deposit acme 5000\n  windlass account deposit acme 5000 --key invoice-7", CHANGE_EXITS
    ))]
    Deposit {
        /// The id of the account.
        id: String,
        /// The amount, in whole numbers of the smallest unit: 1250 for 12.50.
        #[arg(allow_negative_numbers = true, value_parser = positive_amount)]
        amount: i64,
        /// The idempotency key of the payment: a second deposit with the same key is a no-op [default: a new key].
        #[arg(long)]
        key: Option<String>,
    },
    /// Lists the ledger of an account, newest first.
    #[command(after_help = help!(
        "  windlass account ledger acme\n  windlass account ledger acme --run run_0190a1b2 --order oldest", SHOW_EXITS
    ))]
    Ledger(AccountLedgerArgs),
}

#[derive(Args)]
pub(crate) struct AccountLedgerArgs {
    /// The id of the account.
    id: String,
    /// Only rows of this run.
    #[arg(long)]
    run: Option<String>,
    /// The order of the rows.
    #[arg(long, value_enum, default_value = "newest")]
    order: LedgerOrderArg,
    /// The number of rows at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum LedgerOrderArg {
    Newest,
    Oldest,
}

pub(crate) async fn run(command: AccountCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        AccountCommand::Open { id, name } => {
            print_account(&client.accounts().open(&NewAccount { id, name }).await?, session)
        }
        AccountCommand::List => list(session).await,
        AccountCommand::Show { id } => print_account(&client.accounts().show(&id).await?, session),
        AccountCommand::Deposit { id, amount, key } => {
            let key = key.unwrap_or_else(|| unique_id("deposit"));
            let deposited = client.accounts().deposit(&id, &DepositRequest { amount, key }).await?;
            session.out.value(&deposited, &deposited.account.id, || {
                let before = if deposited.created { "" } else { "was made before: " };
                let balance = deposited.account.balance;
                format!("{before}{amount} into {id}, which has {balance} now")
            })?;
            Ok(Exit::Done)
        }
        AccountCommand::Ledger(asked) => ledger(asked, session).await,
    }
}

async fn list(session: &Session) -> Result<Exit> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE_SIZE) };
    let mut accounts = Vec::new();
    loop {
        let part = session.client.accounts().list(&page).await?;
        accounts.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let row = |account: &AccountInfo| {
        let AccountInfo { id, name, balance, held, created_at } = account;
        [id.clone(), name.clone(), balance.to_string(), held.to_string(), from_now(*created_at)]
    };
    session.out.list(
        ["account", "name", "balance", "held", "opened"],
        &accounts,
        |account| account.id.clone(),
        row,
    )?;
    Ok(Exit::Done)
}

/// Prints an account.
fn print_account(account: &AccountInfo, session: &Session) -> Result<Exit> {
    session.out.value(account, &account.id, || {
        let facts = output::facts([
            ("name", account.name.clone()),
            ("balance", account.balance.to_string()),
            ("held", account.held.to_string()),
            ("opened", from_now(account.created_at)),
        ]);
        format!("{}\n{facts}", account.id)
    })?;
    Ok(Exit::Done)
}

async fn ledger(asked: AccountLedgerArgs, session: &Session) -> Result<Exit> {
    let run = match &asked.run {
        Some(run) => Some(session.run_id(run).await?),
        None => None,
    };
    let order = match asked.order {
        LedgerOrderArg::Newest => ListOrder::Newest,
        LedgerOrderArg::Oldest => ListOrder::Oldest,
    };
    let limit = asked.limit as usize;
    let mut query = LedgerListQuery { run, order: Some(order), cursor: None, limit: None };
    let mut entries: Vec<LedgerEntry> = Vec::new();
    let more = loop {
        query.limit = Some(PAGE_SIZE.min(limit - entries.len()));
        let part = session.client.accounts().ledger(&asked.id, &query).await?;
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
        output::message("there may be more: raise --limit to see them");
    }
    Ok(Exit::Done)
}

fn row(entry: &LedgerEntry) -> [String; 6] {
    let mut what = match (&entry.run, &entry.node, &entry.task) {
        (Some(run), Some(node), _) => format!("{run}/{node}"),
        (Some(run), None, _) => run.clone(),
        (None, _, Some(task)) => format!("job {}", native_job_id(task)),
        (None, _, None) => entry.key.clone(),
    };
    if entry.borne_by_platform > 0 {
        what.push_str(&format!(" (cost {} more than charged)", entry.borne_by_platform));
    }
    let amount = if entry.amount > 0 { format!("+{}", entry.amount) } else { entry.amount.to_string() };
    let (seq, at) = (entry.seq.to_string(), from_now(entry.at));
    [seq, at, entry.kind.clone(), amount, entry.balance_after.to_string(), what]
}
