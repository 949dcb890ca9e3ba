//! The only place that writes: data to stdout, messages to stderr. A reader that went away is no error.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

/// Columns of the narrowest terminal that tables are fitted into; what says it has fewer does not know.
const NARROW: u16 = 40;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs: one valid JSON value.
    Json,
    /// One JSON value a line.
    Jsonl,
    /// For people who edit it.
    Yaml,
}

/// How this command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// `None` = nobody said: tables to people, JSON to pipes.
    asked: Option<Format>,
    /// Only ids.
    pub(crate) quiet: bool,
    /// Whether a person reads stdout.
    pub(crate) terminal: bool,
    pub(crate) color: bool,
}

impl Output {
    pub(crate) fn new(asked: Option<Format>, quiet: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        // Set and not empty means no, whatever it says.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output { asked, quiet, terminal, color: terminal && !no_color }
    }

    pub(crate) fn format(&self) -> Format {
        self.asked.unwrap_or(if self.terminal { Format::Table } else { Format::Json })
    }

    /// The format that was asked for, for commands whose lines are meant for people and editors alike.
    pub(crate) fn asked(&self) -> Option<Format> {
        self.asked
    }

    /// Prints a list: a table, one array, or a value a line.
    pub(crate) fn list<T: Serialize, const N: usize>(
        &self,
        heading: [&str; N],
        items: &[T],
        id: impl Fn(&T) -> String,
        row: impl Fn(&T) -> [String; N],
    ) -> Result<()> {
        if self.quiet {
            return items.iter().try_for_each(|item| line(&id(item)));
        }
        match self.format() {
            Format::Table => self.table(heading, &items.iter().map(row).collect::<Vec<_>>()),
            Format::Json => line(&serde_json::to_string_pretty(items)?),
            Format::Jsonl => items.iter().try_for_each(|item| line(&serde_json::to_string(item)?)),
            Format::Yaml => yaml(&items),
        }
    }

    /// Prints one thing; `text` says it to people.
    pub(crate) fn value<T: Serialize>(
        &self,
        value: &T,
        id: &str,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.quiet {
            return line(id);
        }
        match self.format() {
            Format::Table => line(text().trim_end()),
            Format::Json => line(&serde_json::to_string_pretty(value)?),
            Format::Jsonl => line(&serde_json::to_string(value)?),
            Format::Yaml => yaml(value),
        }
    }

    /// Prints rows under a heading, as wide as the terminal at most.
    pub(crate) fn table<const N: usize>(&self, heading: [&str; N], rows: &[[String; N]]) -> Result<()> {
        line(&self.table_text(heading, rows))
    }

    /// The same as text.
    pub(crate) fn table_text<const N: usize>(&self, heading: [&str; N], rows: &[[String; N]]) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(heading.map(str::to_uppercase));
        for row in rows {
            table.add_row(row.iter().map(|text| self.cell(text)));
        }
        let width = table.width();
        if !self.color {
            table.force_no_tty();
        }
        if let Some(width) = width.filter(|width| self.terminal && *width >= NARROW) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        // What names a row is copied from the screen: it stays in one piece.
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.trim_fmt()
    }

    fn cell(&self, text: &str) -> Cell {
        let cell = Cell::new(text);
        match status_color(text).filter(|_| self.color) {
            Some(color) => cell.fg(color),
            None => cell,
        }
    }

    /// Text in the colour of a status.
    pub(crate) fn painted(&self, text: &str, status: &str) -> String {
        let code = match status_color(status).filter(|_| self.color) {
            Some(Color::Green) => 32,
            Some(Color::Red) => 31,
            Some(Color::Yellow) => 33,
            Some(Color::Cyan) => 36,
            Some(_) => 90,
            None => return text.to_owned(),
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn status_color(word: &str) -> Option<Color> {
    match word {
        "completed" | "succeeded" | "ok" | "online" | "enabled" | "yes" => Some(Color::Green),
        "failed" | "error" | "offline" | "NO" => Some(Color::Red),
        "waiting" | "paused" | "suspended" | "retrying" | "parked" | "draining" | "warning" => {
            Some(Color::Yellow)
        }
        "running" | "queued" => Some(Color::Cyan),
        "canceled" | "canceling" | "cancelled" | "skipped" | "pending" | "disabled" => Some(Color::DarkGrey),
        _ => None,
    }
}

fn yaml<T: Serialize>(value: &T) -> Result<()> {
    // By way of JSON, so that numbers and keys read the same in both.
    let text = serde_saphyr::to_string(&serde_json::to_value(value)?)?;
    line(text.trim_end())
}

/// What is known of one thing, a fact a line; what is empty is left out.
pub(crate) fn facts<const N: usize>(facts: [(&str, String); N]) -> String {
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    let width = known.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    known.map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

/// Prints one line of data.
pub(crate) fn line(text: &str) -> Result<()> {
    written(writeln!(io::stdout().lock(), "{text}"))
}

/// Prints text as it is, and lets it be seen at once.
pub(crate) fn raw(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a value as indented JSON, whatever was asked.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Tells a person something that is not data.
pub(crate) fn message(text: &str) {
    // Nobody is left to be told when stderr is gone.
    let _gone = writeln!(io::stderr().lock(), "{text}");
}

/// Asks a person something, on the line that the answer will stand on.
pub(crate) fn ask(question: &str) {
    let mut out = io::stderr().lock();
    // Nobody is left to be asked when stderr is gone.
    let _gone = write!(out, "{question}").and_then(|()| out.flush());
}

fn written(outcome: io::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Output = Output { asked: Some(Format::Table), quiet: false, terminal: false, color: false };

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let rows = [["größe".to_owned(), "b".to_owned()], ["漢字".to_owned(), String::new()]];
        let text = PLAIN.table_text(["a", "b"], &rows);
        assert_eq!(text.lines().collect::<Vec<_>>(), ["A      B", "größe  b", "漢字"]);
    }

    #[test]
    fn only_what_is_known_is_told() {
        let told = facts([("queue", "mail".to_owned()), ("error", String::new()), ("to", "ann".to_owned())]);
        assert_eq!(told, "queue  mail\nto     ann\n");
    }

    #[test]
    fn without_color_nothing_is_painted() {
        assert_eq!(PLAIN.painted("x", "failed"), "x");
        let colorful = Output { terminal: true, color: true, ..PLAIN };
        assert_eq!(colorful.painted("x", "failed"), "\u{1b}[31mx\u{1b}[0m");
    }

    #[test]
    fn pipes_get_json_unless_somebody_asks() {
        let piped = Output { asked: None, ..PLAIN };
        assert_eq!(piped.format(), Format::Json);
        assert_eq!(Output { terminal: true, ..piped }.format(), Format::Table);
        assert_eq!(PLAIN.format(), Format::Table);
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let kind = |kind| written(Err(io::Error::from(kind)));
        assert!(kind(io::ErrorKind::BrokenPipe).is_ok());
        assert!(kind(io::ErrorKind::StorageFull).is_err());
    }
}
