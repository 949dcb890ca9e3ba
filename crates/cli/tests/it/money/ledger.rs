//! The invariants of accounts at rest, checked by the test itself: over HTTP, by `windlass doctor`, and in SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use windlass_sdk::Client;
use windlass_sdk::contract::{LedgerEntry, LedgerListQuery, ListOrder};

use super::{ACCOUNTS, Begun, CALLS, PRICE, TASKS, order};
use crate::http::get;
use crate::server::Server;
use crate::shell::text;

/// The cost of a call that is over, and the part that the platform bears.
#[derive(Debug, PartialEq, Eq)]
struct Closed {
    kind: String,
    estimate: i64,
    returned: i64,
    borne: i64,
}

/// The expected outcome of this call if it was charged and not canceled.
fn expected(nth: usize) -> Closed {
    let (units, how) = order(nth);
    let estimate = units * PRICE;
    let (kind, returned, borne) = match how {
        "less" => ("settle", (units - 1) * PRICE, 0),
        "more" => ("settle", 0, 3 * PRICE),
        "refused" => ("refund", estimate, 0),
        _ => ("settle", 0, 0),
    };
    Closed { kind: kind.to_owned(), estimate, returned, borne }
}

pub(super) async fn check(server: &Server, begun: &Begun) {
    let client = server.client();
    let mut n_charges = 0;
    for (account, first) in ACCOUNTS {
        let deposits = first + if account == "patient" { begun.deposited } else { 0 };
        let rows = read(&client, account).await;
        let charges = add_up(&client, account, deposits, &rows).await;
        n_charges += charges.len();
        for (run, _) in begun.runs.iter().filter(|(_, of)| **of == account) {
            check_run(&client, run, account, &charges).await;
        }
        if account == "rich" {
            let tasks = charges.keys().filter(|subject| subject.starts_with("job_")).count();
            assert_eq!(tasks, TASKS, "every task was charged once");
        }
    }
    assert!(n_charges > 1_000, "only {n_charges} charges");
    doctor(server);
    sql(server);
}

async fn read(client: &Client, account: &str) -> Vec<LedgerEntry> {
    let mut query =
        LedgerListQuery { order: Some(ListOrder::Oldest), limit: Some(500), ..LedgerListQuery::default() };
    let mut rows = Vec::new();
    loop {
        let page = client.accounts().ledger(account, &query).await.unwrap();
        rows.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return rows,
        }
    }
}

/// Checks a ledger from its beginning: never negative, no row twice, the balance is the sum, every charge is closed once.
/// Returns the row that closed each charge, by the call.
async fn add_up(
    client: &Client,
    account: &str,
    deposits: i64,
    rows: &[LedgerEntry],
) -> BTreeMap<String, Closed> {
    let (mut balance, mut put_in, mut keys) = (0, 0, BTreeSet::new());
    let (mut open, mut closed) = (BTreeMap::new(), BTreeMap::new());
    for (row, seq) in rows.iter().zip(1..) {
        balance += row.amount;
        assert_eq!((row.seq, row.balance_after), (seq, balance), "{account}: {row:?}");
        assert!(balance >= 0, "{account} was overdrawn: {row:?}");
        assert!(keys.insert(&row.key), "{account}: {} was made twice", row.key);
        let (kind, subject) = row.key.split_once(':').unwrap();
        assert_eq!(kind, row.kind);
        match kind {
            "deposit" => put_in += row.amount,
            "charge" => assert_eq!(open.insert(subject, -row.amount), None, "{account}: {subject}"),
            "settle" | "refund" => {
                let estimate =
                    open.remove(subject).unwrap_or_else(|| panic!("{account}: {row:?} closes nothing"));
                assert!((0..=estimate).contains(&row.amount), "{account}: {row:?}");
                let end = Closed {
                    kind: row.kind.clone(),
                    estimate,
                    returned: row.amount,
                    borne: row.borne_by_platform,
                };
                assert_eq!(
                    closed.insert(subject.to_owned(), end),
                    None,
                    "{account}: {subject} was closed twice"
                );
            }
            other => panic!("{account}: a {other}"),
        }
    }
    assert_eq!(open, BTreeMap::new(), "{account}: charges that nothing has closed");
    assert_eq!(put_in, deposits, "{account}: every deposit once");
    let shown = client.accounts().show(account).await.unwrap();
    assert_eq!((shown.balance, shown.held), (balance, 0), "{account}");
    closed
}

/// Every call of the run was charged once or failed for lack of money; its cost equals the ledger's.
async fn check_run(client: &Client, run: &str, account: &str, charges: &BTreeMap<String, Closed>) {
    let shown = get(client, &format!("/api/v1/runs/{run}")).await;
    let (mut estimated, mut actual) = (0, 0);
    for nth in 0..CALLS {
        let node = format!("n{nth}");
        let state = &shown["node_states"][&node];
        let prefix = format!("{run}/{node}/");
        let mut of_node =
            charges.range(prefix.clone()..).take_while(|(subject, _)| subject.starts_with(&prefix));
        let charge = of_node.next().map(|(_, charge)| charge);
        assert_eq!(of_node.next(), None, "{run}: {node} was charged twice");
        match (charge, state["status"].as_str().unwrap()) {
            (None, "failed") => {
                let error = state["error"].to_string();
                assert!(account == "poor" && error.contains("insufficient_balance"), "{run}: {error}");
            }
            (None, status) => {
                assert!(status == "canceled" && account == "fickle", "{run}: {node} is {status}")
            }
            (Some(charge), "canceled") => assert_eq!(charge.kind, "refund", "{run}: {node}"),
            (Some(charge), _) => assert_eq!(*charge, expected(nth), "{run}: {node}"),
        }
        if let Some(charge) = charge {
            estimated += charge.estimate;
            actual += charge.estimate - charge.returned;
        }
    }
    let cost = &shown["cost"];
    assert_eq!((&cost["estimated"], &cost["actual"]), (&estimated.into(), &actual.into()), "{run}: {cost}");
}

fn doctor(server: &Server) {
    let said = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["doctor", "--server", &server.url(), "-o", "json"])
        .output()
        .unwrap();
    let (out, err) = (text(&said.stdout), text(&said.stderr));
    assert!(said.status.success(), "{out}\n{err}");
    let findings: Value = serde_json::from_str(&out).unwrap();
    let state = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "state").unwrap();
    assert_eq!(state["status"], "ok", "{out}");
    assert!(state["detail"].as_str().unwrap().contains("4 accounts"), "{out}");
}

/// Checks the ledger with plain SQL, as an auditor would.
fn sql(server: &Server) {
    let bad = [
        (
            "the balance is the sum",
            "SELECT a.id FROM accounts a LEFT JOIN ledger l ON l.account = a.id GROUP BY a.id, a.balance, a.held \
             HAVING a.balance != SUM(l.amount) OR a.held != SUM(l.held) OR a.held != 0",
        ),
        ("never negative", "SELECT account, seq FROM ledger WHERE balance_after < 0"),
        (
            "closed once",
            "SELECT c.key FROM ledger c WHERE c.kind = 'charge' AND 1 != (SELECT COUNT(*) FROM ledger e \
             WHERE e.account = c.account \
             AND e.key IN ('settle:' || SUBSTR(c.key, 8), 'refund:' || SUBSTR(c.key, 8)))",
        ),
        (
            "nothing without a charge",
            "SELECT e.key FROM ledger e WHERE e.kind IN ('settle', 'refund') AND NOT EXISTS \
             (SELECT 1 FROM ledger c WHERE c.account = e.account AND c.key = 'charge:' || SUBSTR(e.key, 8))",
        ),
    ];
    for (what, query) in bad {
        assert_eq!(server.store().ask(query), "", "{what}");
    }
    let n_rows: u64 = server.store().ask("SELECT COUNT(*) FROM ledger").trim().parse().unwrap();
    assert!(n_rows > 2_000, "{n_rows}");
}
