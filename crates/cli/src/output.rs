//! The only module that writes to stdout (data) and stderr (messages). A closed pipe is no error.
//!
//! Tables fit the terminal: a cell that is too long ends with an ellipsis, and ids are shortened to a prefix that is
//! unique in the list. `--wide` turns both off.
//!
//! Workers and clients write much of the printed text. [`shown`] escapes their control characters at the last moment, so
//! that none of them reaches a terminal; commands to the terminal pass only by way of [`command`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use anyhow::Result;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, presets};
use serde::Serialize;

/// Columns of the narrowest terminal that tables are fitted into; a smaller width is not believed.
const TERMINAL_COLUMNS_MIN: u16 = 40;
/// Hexadecimal digits of a shortened id at least: the first 12 of an id are its time in milliseconds.
const ID_DIGITS_MIN: usize = 12;
/// Characters of a whole id without its prefix: 32 digits, with hyphens or without.
const ID_CHARS_MIN: usize = 32;

/// The two characters that begin a command to the terminal, as they stand in text until it is printed. The mark differs
/// in every process, so that no text from outside can contain it.
static COMMAND_MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().hash_one(std::process::id())));
/// The same characters as the terminal reads them.
const COMMAND_BEGIN: &str = "\u{1b}[";

/// The format of data on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Table,
    /// For programs: one valid JSON value.
    Json,
    /// One JSON value a line.
    Jsonl,
    /// For people who edit it.
    Yaml,
}

/// The output options of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    /// `None` = the default: tables to a terminal, JSON to a pipe.
    asked: Option<OutputFormat>,
    /// Only ids.
    pub(crate) quiet: bool,
    /// Whole ids and whole cells in tables.
    pub(crate) wide: bool,
    /// Columns that a table may have: `COLUMNS`, or the width of the terminal.
    pub(crate) columns: Option<u16>,
    /// Whether stdout is a terminal.
    pub(crate) terminal: bool,
    pub(crate) color: bool,
}

impl Printer {
    pub(crate) fn new(asked: Option<OutputFormat>, quiet: bool, wide: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        // Any value that is not empty turns colour off.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let columns = set.or_else(|| if terminal { Table::new().width() } else { None });
        let columns = columns.filter(|columns| !wide && *columns >= TERMINAL_COLUMNS_MIN);
        Printer { asked, quiet, wide, columns, terminal, color: terminal && !no_color }
    }

    pub(crate) fn format(&self) -> OutputFormat {
        self.asked.unwrap_or(if self.terminal { OutputFormat::Table } else { OutputFormat::Json })
    }

    /// The requested format, for commands whose lines are for people and editors alike.
    pub(crate) fn asked(&self) -> Option<OutputFormat> {
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
            OutputFormat::Table => self.table(heading, &items.iter().map(row).collect::<Vec<_>>()),
            OutputFormat::Json => line(&serde_json::to_string_pretty(items)?),
            OutputFormat::Jsonl => items.iter().try_for_each(|item| line(&serde_json::to_string(item)?)),
            OutputFormat::Yaml => yaml(&items),
        }
    }

    /// Prints one value; `text` renders it for people.
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
            OutputFormat::Table => line(text().trim_end()),
            OutputFormat::Json => line(&serde_json::to_string_pretty(value)?),
            OutputFormat::Jsonl => line(&serde_json::to_string(value)?),
            OutputFormat::Yaml => yaml(value),
        }
    }

    /// Prints rows under a heading, as wide as the terminal at most.
    pub(crate) fn table<const N: usize>(&self, heading: [&str; N], rows: &[[String; N]]) -> Result<()> {
        line(&self.table_text(heading, rows))
    }

    /// The text of a table.
    pub(crate) fn table_text<const N: usize>(&self, heading: [&str; N], rows: &[[String; N]]) -> String {
        let mut table = Table::new();
        let one_line = |cells: Vec<Cell>| {
            let mut row = Row::from(cells);
            row.max_height(1);
            row
        };
        table.load_style(presets::NOTHING);
        table.set_header(one_line(heading.iter().map(|text| Cell::new(text.to_uppercase())).collect()));
        for row in rows {
            table.add_row(one_line(row.iter().map(|text| self.cell(text)).collect()));
        }
        if !self.color {
            table.force_no_tty();
        }
        if let Some(columns) = self.columns {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        // People copy the first cell, which names the row: it is never cut.
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        // The cells hold no escape characters any more: all of them are colours.
        table.trim_fmt().replace(COMMAND_BEGIN, &COMMAND_MARK)
    }

    /// Shortens the ids of one list for a table.
    pub(crate) fn short_ids<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> ShortIds {
        if self.wide || self.format() != OutputFormat::Table {
            return ShortIds { n_digits: usize::MAX };
        }
        let ids: BTreeSet<&str> = ids.into_iter().collect();
        // Ids are sorted, so the longest common prefix is one of neighbours.
        let shared = |(a, b): (&&str, &&str)| {
            digits_of(a).bytes().zip(digits_of(b).bytes()).take_while(|(a, b)| a == b).count()
        };
        let n_shared = ids.iter().zip(ids.iter().skip(1)).map(shared).max().unwrap_or(0);
        ShortIds { n_digits: ID_DIGITS_MIN.max(n_shared + 1) }
    }

    fn cell(&self, text: &str) -> Cell {
        // The width of a cell is the width of the text that is printed.
        let cell = Cell::new(escaped(text));
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
        format!("{}{text}{}", command(&format!("{code}m")), command("0m"))
    }
}

/// The length to which the ids of one list are shortened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortIds {
    n_digits: usize,
}

impl ShortIds {
    /// An id such as `run_0190a1b2c3d4…` up to the first digits that no other id of the list begins with. A text that
    /// is not an id stays whole.
    pub(crate) fn of(self, id: &str) -> String {
        let digits = digits_of(id);
        let is_id =
            digits.len() >= ID_CHARS_MIN && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        match digits.char_indices().filter(|(_, c)| *c != '-').nth(self.n_digits) {
            Some((end, _)) if is_id => {
                let end = id.len() - digits.len() + end;
                id[..end].trim_end_matches('-').to_owned()
            }
            Some(_) | None => id.to_owned(),
        }
    }
}

/// The part of an id behind its prefix.
fn digits_of(id: &str) -> &str {
    id.split_once('_').map_or(id, |(_, digits)| digits)
}

fn status_color(word: &str) -> Option<Color> {
    match word {
        "completed" | "succeeded" | "ok" | "online" | "enabled" | "yes" => Some(Color::Green),
        "failed" | "error" | "offline" | "NO" => Some(Color::Red),
        "waiting" | "paused" | "suspended" | "retrying" | "parked" | "draining" | "warning" => {
            Some(Color::Yellow)
        }
        "running" | "queued" => Some(Color::Cyan),
        "canceled" | "canceling" | "skipped" | "pending" | "disabled" => Some(Color::DarkGrey),
        _ => None,
    }
}

fn yaml<T: Serialize>(value: &T) -> Result<()> {
    line(yaml_text(value)?.trim_end())
}

fn yaml_text<T: Serialize>(value: &T) -> Result<String> {
    // By way of JSON, so that numbers and keys read the same in both.
    Ok(serde_saphyr::to_string(&serde_json::to_value(value)?)?)
}

/// The fields of one thing, a line each; empty ones are left out.
pub(crate) fn facts<const N: usize>(facts: [(&str, String); N]) -> String {
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    let width = known.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    known.map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

/// A command to the terminal, such as `2K`, for text that is printed by this module.
pub(crate) fn command(code: &str) -> String {
    format!("{}{code}", *COMMAND_MARK)
}

/// Whether a character moves the cursor, changes the terminal or reorders the line instead of being seen in it.
fn is_unsafe(c: char) -> bool {
    let reorders =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Text with its unsafe characters as `\u001b`, which JSON reads as the same character.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_unsafe(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Text as it is printed.
fn shown(text: &str) -> String {
    escaped(text).replace(COMMAND_MARK.as_str(), COMMAND_BEGIN)
}

/// Prints one line of data.
pub(crate) fn line(text: &str) -> Result<()> {
    written(writeln!(io::stdout().lock(), "{}", shown(text)))
}

/// Prints text without a line break, and lets it be seen at once.
pub(crate) fn part(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    written(out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()))
}

/// Prints a value as indented JSON in every format.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints a message to stderr.
pub(crate) fn message(text: &str) {
    // A closed stderr leaves no reader.
    let _gone = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// Prints a question without a line break: the answer stands on the same line.
pub(crate) fn ask(question: &str) {
    let mut out = io::stderr().lock();
    // A closed stderr leaves no reader.
    let _gone = write!(out, "{}", shown(question)).and_then(|()| out.flush());
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

    const PLAIN: Printer = Printer {
        asked: Some(OutputFormat::Table),
        quiet: false,
        wide: false,
        columns: None,
        terminal: false,
        color: false,
    };

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let rows = [["größe".to_owned(), "b".to_owned()], ["漢字".to_owned(), String::new()]];
        let text = PLAIN.table_text(["a", "b"], &rows);
        assert_eq!(text.lines().collect::<Vec<_>>(), ["A      B", "größe  b", "漢字"]);
    }

    #[test]
    fn a_cell_that_is_too_long_ends_with_an_ellipsis() {
        let row = [
            "run_0190a1b2c3d4".to_owned(),
            "cannot open the file of the customer because it is gone".to_owned(),
        ];
        let narrow = Printer { columns: Some(40), ..PLAIN };
        let text = narrow.table_text(["id", "error"], &[row]);
        assert_eq!(text.lines().count(), 2, "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("run_0190a1b2c3d4  cannot open") && last.ends_with('…'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }

    #[test]
    fn ids_are_shortened_to_a_prefix_that_is_unique_in_the_list() {
        let [a, b] = ["run_0190a1b2c3d47aaabbbbccccddddeeee", "run_0190a1b2c3d47aabbbbbccccddddeeee"];
        let short = |ids: &[&str], id| PLAIN.short_ids(ids.iter().copied()).of(id);
        assert_eq!(short(&[a], a), "run_0190a1b2c3d4");
        assert_eq!(
            (short(&[a, b], a), short(&[a, b], b)),
            ("run_0190a1b2c3d47aaa".into(), "run_0190a1b2c3d47aab".into())
        );
        let dashed = "f2841987-0cf0-42e4-bb69-066ad5978c56";
        assert_eq!(short(&[dashed], dashed), "f2841987-0cf0");
        assert_eq!(short(&["invoice-7"], "invoice-7"), "invoice-7");
        let wide = Printer { wide: true, ..PLAIN };
        assert_eq!(wide.short_ids([a]).of(a), a);
    }

    #[test]
    fn empty_facts_are_left_out() {
        let told = facts([("queue", "mail".to_owned()), ("error", String::new()), ("to", "ann".to_owned())]);
        assert_eq!(told, "queue  mail\nto     ann\n");
    }

    #[test]
    fn without_color_nothing_is_painted() {
        assert_eq!(PLAIN.painted("x", "failed"), "x");
        let colorful = Printer { terminal: true, color: true, ..PLAIN };
        assert_eq!(shown(&colorful.painted("x", "failed")), "\u{1b}[31mx\u{1b}[0m");
    }

    #[test]
    fn control_characters_are_printed_as_escapes() {
        let evil = "a\u{1b}]0;title\u{7}\r\u{8}\u{7f}\u{9b}2J\u{202e}\tb\nc";
        let plain = "a\\u001b]0;title\\u0007\\u000d\\u0008\\u007f\\u009b2J\\u202e\tb\nc";
        assert_eq!(shown(evil), plain);
        let table = shown(&PLAIN.table_text(["error"], &[[evil.to_owned()]]));
        assert!(table.contains("a\\u001b]0;title") && !table.contains(is_unsafe), "{table:?}");
        assert_eq!(shown("größe 🚀 👨\u{200d}👩 漢字"), "größe 🚀 👨\u{200d}👩 漢字");
    }

    #[test]
    fn escapes_keep_json_and_yaml_as_they_were() {
        let value = serde_json::json!({ "error": "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\\b" });
        let json = shown(&serde_json::to_string(&value).unwrap());
        assert!(!json.contains(is_unsafe), "{json:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        let yaml = shown(&yaml_text(&value).unwrap());
        assert!(!yaml.contains(is_unsafe), "{yaml:?}");
        assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap(), value, "{yaml}");
    }

    #[test]
    fn pipes_get_json_by_default() {
        let piped = Printer { asked: None, ..PLAIN };
        assert_eq!(piped.format(), OutputFormat::Json);
        assert_eq!(Printer { terminal: true, ..piped }.format(), OutputFormat::Table);
        assert_eq!(PLAIN.format(), OutputFormat::Table);
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let kind = |kind| written(Err(io::Error::from(kind)));
        assert!(kind(io::ErrorKind::BrokenPipe).is_ok());
        assert!(kind(io::ErrorKind::StorageFull).is_err());
    }
}
