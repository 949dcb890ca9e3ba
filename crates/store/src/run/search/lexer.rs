//! Terms of a query as they are written: a key, an operator, and values with commas between.

use super::SearchError;

/// Characters that end a key and begin the values.
const OPERATORS: [char; 5] = [':', '~', '=', '<', '>'];

/// One term.
#[derive(Debug)]
pub(super) struct RawTerm {
    pub(super) position: usize,
    pub(super) is_negated: bool,
    /// The text of a term without an operator.
    pub(super) key: String,
    pub(super) operator: Option<char>,
    pub(super) values: Vec<RawValue>,
}

/// One of the values of a term.
#[derive(Debug)]
pub(super) struct RawValue {
    pub(super) position: usize,
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

struct Lexer {
    text: Vec<char>,
    at: usize,
}

/// All terms of a text.
pub(super) fn terms(text: &str) -> Result<Vec<RawTerm>, SearchError> {
    let mut lexer = Lexer { text: text.chars().collect(), at: 0 };
    let mut terms = Vec::new();
    loop {
        lexer.skip(|c| c.is_whitespace());
        if lexer.peek().is_none() {
            return Ok(terms);
        }
        terms.push(lexer.term()?);
    }
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    fn term(&mut self) -> Result<RawTerm, SearchError> {
        let position = self.at;
        let is_negated = self.peek() == Some('-');
        if is_negated {
            self.at += 1;
        }
        if self.peek() == Some('"') {
            let key = self.quoted()?;
            return Ok(RawTerm { position, is_negated, key, operator: None, values: Vec::new() });
        }
        let from = self.at;
        self.skip(|c| !c.is_whitespace() && c != '"' && !OPERATORS.contains(&c));
        let key: String = self.text[from..self.at].iter().collect();
        let operator = self.peek().filter(|c| OPERATORS.contains(c));
        if key.is_empty() {
            let reason = match operator {
                Some(operator) => format!("there is no field before `{operator}`"),
                None => "there is nothing after `-`".to_owned(),
            };
            return Err(SearchError { position, reason });
        }
        let mut values = Vec::new();
        if operator.is_some() {
            self.at += 1;
            values = self.values()?;
        }
        Ok(RawTerm { position, is_negated, key, operator, values })
    }

    /// The values after an operator, at least one.
    fn values(&mut self) -> Result<Vec<RawValue>, SearchError> {
        let mut values = Vec::new();
        loop {
            let position = self.at;
            let is_quoted = self.peek() == Some('"');
            let text = if is_quoted {
                self.quoted()?
            } else {
                self.skip(|c| !c.is_whitespace() && c != '"' && c != ',');
                self.text[position..self.at].iter().collect()
            };
            if text.is_empty() && !is_quoted {
                return Err(SearchError { position, reason: "a value is missing here".to_owned() });
            }
            values.push(RawValue { position, text, is_quoted });
            if self.peek() != Some(',') {
                return Ok(values);
            }
            self.at += 1;
        }
    }

    /// A text in quotes, with the escapes of JSON.
    fn quoted(&mut self) -> Result<String, SearchError> {
        let position = self.at;
        self.at += 1;
        let mut is_escaped = false;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => {
                    let text: String = self.text[position..self.at].iter().collect();
                    let reason = || "the text in quotes has an escape that JSON does not know".to_owned();
                    return serde_json::from_str(&text)
                        .map_err(|_| SearchError { position, reason: reason() });
                }
                _ => {}
            }
        }
        Err(SearchError { position, reason: "the quote that begins here does not end".to_owned() })
    }
}
