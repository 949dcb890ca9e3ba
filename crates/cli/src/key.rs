//! `windlass key`: makes, lists and ends API keys.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use windlass_engine::access::Role;
use windlass_engine::access::identity::{KeyRights, WorkScope};
use windlass_engine::time::Timestamp;
use windlass_runtime::Settings;
use windlass_runtime::access::{NewApiKey, add_key, generate};
use windlass_sdk::contract::{KeyInfo, KeyMade, KeyRole, NewKey, PageQuery, RotateKey, Time};

use crate::exit::{Exit, usage};
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::output;
use crate::serve::config::{ServeArgs, StoreLocation};
use crate::serve::server::open_store;
use crate::session::{GlobalArgs, Session, duration, from_now, in_ms, now_ms};

/// Keys that a page has.
const PAGE_SIZE: usize = 1_000;
/// The code of an error if no server answers.
const UNREACHABLE: &str = "unreachable";

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes a key and prints it once.
    ///
    /// It asks the server; if no server answers, it writes to the store that `windlass serve` would use here. So the
    /// first key of a server can be made before its first start.
    #[command(after_help = help!(
        "  windlass key create --role admin --name me\n  \
           windlass key create --role worker --name tts-1 --service tts --expires 90d\n  \
           windlass key create --role admin --name me --store sqlite:/var/lib/windlass/windlass.db",
        CHANGE_EXITS
    ))]
    Create(KeyCreateArgs),
    /// Lists keys, without their secrets.
    #[command(after_help = help!("  windlass key list\n  windlass key list -o json", SHOW_EXITS))]
    List,
    /// Ends a key at once; on other servers of the store within a second.
    #[command(after_help = help!("  windlass key revoke 4fT9xKq2", CHANGE_EXITS))]
    Revoke {
        /// The id of the key.
        id: String,
    },
    /// Makes the successor of a key with the same rights, and ends the old one after a while.
    #[command(after_help = help!("  windlass key rotate 4fT9xKq2 --grace 24h", CHANGE_EXITS))]
    Rotate {
        /// The id of the key.
        id: String,
        /// How long the old key stays valid: 0s, 1h, 24h; at most 30d.
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
        grace: Duration,
    },
    /// Prints a new admin key and stores it nowhere: the content of a file for WINDLASS_FIRST_KEY_FILE.
    #[command(after_help = help!(
        "  (umask 077; windlass key generate > first.key)\n  \
           WINDLASS_FIRST_KEY_FILE=first.key windlass serve --listen 0.0.0.0:8070",
        "Exit codes:\n  0  printed"
    ))]
    Generate,
}

#[derive(Args)]
pub(crate) struct KeyCreateArgs {
    /// The role.
    #[arg(long, value_enum)]
    role: KeyRoleArg,
    /// The name of its owner, which the audit shows.
    #[arg(long)]
    name: String,
    /// A service whose work the key may do, or `*`; of workers, repeatable.
    #[arg(long = "service", value_name = "SERVICE")]
    services: Vec<String>,
    /// A queue whose work the key may do, or `*`; of workers, repeatable.
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// The right to publish definitions with scripts; of authors and admins.
    #[arg(long)]
    scripts: bool,
    /// How long the key is valid: 90d [default: until it is revoked].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<Duration>,
    /// Writes the key to this store instead of asking a server: sqlite:PATH or postgres://USER@HOST/DATABASE.
    #[arg(long)]
    store: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KeyRoleArg {
    /// Reads.
    Viewer,
    /// Reads, starts, acts on runs and jobs, decides approvals.
    Operator,
    /// Does the work of its services and queues.
    Worker,
    /// An operator who also changes flows, schedules, prices, services and queues.
    Author,
    /// May do everything.
    Admin,
}

impl KeyRoleArg {
    fn role(self) -> (Role, KeyRole) {
        match self {
            KeyRoleArg::Viewer => (Role::Viewer, KeyRole::Viewer),
            KeyRoleArg::Operator => (Role::Operator, KeyRole::Operator),
            KeyRoleArg::Worker => (Role::Worker, KeyRole::Worker),
            KeyRoleArg::Author => (Role::Author, KeyRole::Author),
            KeyRoleArg::Admin => (Role::Admin, KeyRole::Admin),
        }
    }
}

impl KeyCreateArgs {
    fn expires_at(&self) -> Option<Time> {
        let length = self.expires.map(|length| i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
        length.map(|length| Time(now_ms().saturating_add(length)))
    }

    fn request(&self) -> NewKey {
        NewKey {
            name: self.name.clone(),
            role: self.role.role().1,
            scripts: self.scripts,
            services: self.services.clone(),
            queues: self.queues.clone(),
            expires_at: self.expires_at(),
        }
    }
}

pub(crate) async fn run(command: KeyCommand, options: &GlobalArgs) -> Result<Exit> {
    match command {
        KeyCommand::Create(flags) => create(&flags, options).await,
        KeyCommand::List => list(&options.session()?).await,
        KeyCommand::Revoke { id } => {
            let session = options.session()?;
            let key = session.client.keys().revoke(&id).await?;
            session.out.value(&key, &key.id, || format!("{} of {} is revoked", key.id, key.name))?;
            Ok(Exit::Done)
        }
        KeyCommand::Rotate { id, grace } => {
            let session = options.session()?;
            let rotate = RotateKey { grace_ms: Some(in_ms(grace)) };
            print_made(&session.client.keys().rotate(&id, &rotate).await?, options)
        }
        KeyCommand::Generate => {
            output::line(generate(Role::Admin).reveal())?;
            Ok(Exit::Done)
        }
    }
}

async fn create(flags: &KeyCreateArgs, options: &GlobalArgs) -> Result<Exit> {
    if let Some(text) = &flags.store {
        let place = StoreLocation::parse(text).map_err(usage)?;
        return print_made(&create_in(&place, flags).await?, options);
    }
    let session = options.session()?;
    let refused = match session.client.keys().create(&flags.request()).await {
        Ok(made) => return print_made(&made, options),
        Err(error) => error,
    };
    if refused.code != UNREACHABLE || options.names_a_server() {
        return Err(refused.into());
    }
    let place = match std::env::var("WINDLASS_STORE") {
        Ok(text) if !text.is_empty() => StoreLocation::parse(&text).map_err(usage)?,
        Ok(_) | Err(_) => ServeArgs::default().config()?.store,
    };
    output::message(&format!("no server answers, so the key is written to {place}"));
    print_made(&create_in(&place, flags).await?, options)
}

/// Writes a key to a store that no server of this machine uses, or that servers share.
async fn create_in(place: &StoreLocation, flags: &KeyCreateArgs) -> Result<KeyMade> {
    if matches!(place, StoreLocation::Temporary) {
        bail!("a temporary store ends with its server: name another one with --store");
    }
    let rights = KeyRights {
        role: flags.role.role().0,
        may_script: flags.scripts,
        scope: WorkScope {
            services: flags.services.iter().cloned().collect(),
            queues: flags.queues.iter().cloned().collect(),
        },
    };
    let rights = rights.checked().map_err(|(field, reason)| usage(format!("{field}: {reason}")))?;
    if flags.name.trim().is_empty() || flags.name.chars().any(char::is_control) {
        return Err(usage("--name: give a name of visible characters"));
    }
    let new = NewApiKey {
        name: flags.name.clone(),
        rights,
        expires_at: flags.expires_at().map(|at| Timestamp(at.0)),
        created_by: "windlass key create".to_owned(),
    };
    let store = open_store(place, windlass_store::Durability::Strict).await.with_context(|| {
        format!("cannot open {place}: if a server uses it, make the key there, without --store")
    })?;
    let project = Settings::default().project;
    let (key, row) = add_key(&*store, &project, new, Timestamp(now_ms())).await?;
    let info = KeyInfo {
        id: row.id.to_string(),
        name: row.name,
        role: flags.role.role().1,
        scripts: flags.scripts,
        services: flags.services.clone(),
        queues: flags.queues.clone(),
        created_at: Time(row.created_at.0),
        created_by: row.created_by,
        expires_at: row.term.expires_at.map(|at| Time(at.0)),
        revoked_at: None,
        used_at: None,
    };
    Ok(KeyMade { key: key.reveal().to_owned(), info })
}

/// Prints a new key: the text alone for scripts, with a hint for people.
fn print_made(made: &KeyMade, options: &GlobalArgs) -> Result<Exit> {
    let KeyInfo { id, name, role, .. } = &made.info;
    options.print().value(made, &made.key, || made.key.clone())?;
    output::message(&format!(
        "key {id} of {name}, {}: keep it, it is not shown again; clients take it from WINDLASS_KEY",
        role.word()
    ));
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Result<Exit> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE_SIZE) };
    let mut keys = Vec::new();
    loop {
        let part = session.client.keys().list(&page).await?;
        keys.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    keys.sort_by_key(|key: &KeyInfo| std::cmp::Reverse(key.created_at.0));
    let row = |key: &KeyInfo| {
        [
            key.id.clone(),
            key.name.clone(),
            key.role.word().to_owned(),
            scope(key),
            state(key),
            from_now(key.created_at),
            key.used_at.map(from_now).unwrap_or_default(),
        ]
    };
    session.out.list(
        ["id", "name", "role", "services and queues", "state", "made", "last use"],
        &keys,
        |key| key.id.clone(),
        row,
    )?;
    Ok(Exit::Done)
}

fn scope(key: &KeyInfo) -> String {
    let scripts = key.scripts.then(|| "scripts".to_owned());
    let queues = key.queues.iter().map(|queue| format!("queue {queue}"));
    key.services.iter().cloned().chain(queues).chain(scripts).collect::<Vec<_>>().join(", ")
}

fn state(key: &KeyInfo) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(at)) if at.0 <= now_ms() => "expired".to_owned(),
        (None, Some(at)) => format!("expires {}", from_now(at)),
        (None, None) => "valid".to_owned(),
    }
}
