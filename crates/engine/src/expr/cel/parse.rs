//! From tokens to a tree, by precedence. Recursion is counted, and so is the depth of the tree: chains such as
//! `1 + 1 + …` make it deep without any bracket.

use serde_json::Value;

use super::scan::{Scanned, Token, fault};
use super::tree::{Against, CelMacro, CelNode, Conversion, Op, TextTest};
use crate::expr::pattern::Pattern;
use crate::limits::EXPRESSION_DEPTH;
use crate::problem::did_you_mean;
use crate::text::excerpt;

/// Depth of a tree: evaluation recurses once per level.
const TREE_DEPTH: usize = 64;
/// Loops inside loops.
const LOOPS_MAX: usize = 2;
const FUNCTIONS: [&str; 16] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "double",
    "string",
    "bool",
    "type",
    "has",
    "all",
    "exists",
    "exists_one",
    "filter",
    "map",
];
/// Names that `type(x)` may be compared with.
const TYPES: [&str; 7] = ["null_type", "bool", "int", "double", "string", "list", "map"];

/// Reads the tokens of `text` as one expression.
pub(super) fn parse(text: &str, scanned: &Scanned<'_>) -> Result<CelNode, String> {
    let mut parser = Parser { text, tokens: &scanned.tokens, at: 0, n_open: 0, locals: Vec::new() };
    let part = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(part.node),
        Token::Literal(_) | Token::Ref(_) | Token::Word(_) | Token::Symbol(_) => {
            Err(parser.unexpected("an operator or the end"))
        }
    }
}

/// A tree and how deep it is.
struct ParsedNode {
    node: CelNode,
    depth: usize,
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [(Token<'a>, usize)],
    at: usize,
    /// Expressions that are being read inside one another.
    n_open: usize,
    /// The variables of the loops around, outermost first.
    locals: Vec<&'a str>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a Token<'a> {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    /// Moves on if the next token is this symbol.
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        match self.take(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{symbol}`"))),
        }
    }

    fn fault(&self, reason: &str) -> String {
        let at = self.tokens.get(self.at).map_or(self.text.len(), |(_, at)| *at);
        fault(self.text, at, reason)
    }

    fn unexpected(&self, wanted: &str) -> String {
        self.fault(&match self.peek() {
            Token::End => format!("{wanted} is expected, but the expression ends"),
            Token::Symbol(symbol) => format!("{wanted} is expected, not `{symbol}`"),
            Token::Word(word) => format!("{wanted} is expected, not `{}`", excerpt(word)),
            Token::Ref(_) => format!("{wanted} is expected, not a reference"),
            Token::Literal(_) => format!("{wanted} is expected, not a value"),
        })
    }

    /// One deeper than `below`, if that is not too deep.
    fn part(&self, node: CelNode, below: usize) -> Result<ParsedNode, String> {
        match below >= TREE_DEPTH {
            true => Err(self.fault("the expression has too many operators in a row: split the condition")),
            false => Ok(ParsedNode { node, depth: below + 1 }),
        }
    }

    fn expression(&mut self) -> Result<ParsedNode, String> {
        self.n_open += 1;
        if self.n_open > EXPRESSION_DEPTH {
            let reason = format!("the expression nests deeper than {EXPRESSION_DEPTH}: split the condition");
            return Err(self.fault(&reason));
        }
        let test = self.logical("||")?;
        let part = match self.take("?") {
            false => test,
            true => {
                let then = self.logical("||")?;
                self.expect(":")?;
                let other = self.expression()?;
                let below = test.depth.max(then.depth).max(other.depth);
                let node = CelNode::If(Box::new(test.node), Box::new(then.node), Box::new(other.node));
                self.part(node, below)?
            }
        };
        self.n_open -= 1;
        Ok(part)
    }

    /// `a || b || …` of `a && b && …` of comparisons. The whole row is one node: only this makes long ones shallow.
    fn logical(&mut self, symbol: &'static str) -> Result<ParsedNode, String> {
        let mut nodes = Vec::new();
        let mut below = 0;
        loop {
            let part = match symbol {
                "||" => self.logical("&&")?,
                _ => self.binary(0)?,
            };
            if nodes.is_empty() && !matches!(self.peek(), Token::Symbol(next) if *next == symbol) {
                return Ok(part);
            }
            below = below.max(part.depth);
            nodes.push(part.node);
            if !self.take(symbol) {
                break;
            }
        }
        let node = if symbol == "||" { CelNode::Or(nodes) } else { CelNode::And(nodes) };
        self.part(node, below)
    }

    /// Comparisons of sums of products: `level` 0, 1 and 2.
    fn binary(&mut self, level: usize) -> Result<ParsedNode, String> {
        if level > 2 {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(op) = operator(self.peek(), level) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            let below = left.depth.max(right.depth);
            left = self.part(CelNode::Binary(op, Box::new(left.node), Box::new(right.node)), below)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<ParsedNode, String> {
        let mut signs = Vec::new();
        while let Token::Symbol(sign @ ("!" | "-")) = self.peek() {
            signs.push(*sign);
            self.at += 1;
        }
        let mut part = self.member()?;
        while let Some(sign) = signs.pop() {
            let value = Box::new(part.node);
            part = self
                .part(if sign == "!" { CelNode::Not(value) } else { CelNode::Negate(value) }, part.depth)?;
        }
        Ok(part)
    }

    fn member(&mut self) -> Result<ParsedNode, String> {
        let mut part = self.primary()?;
        loop {
            if self.take(".") {
                let Token::Word(name) = self.peek() else { return Err(self.unexpected("a name")) };
                self.at += 1;
                part = match self.take("(") {
                    true => self.call(name, Some(part))?,
                    false => {
                        self.part(CelNode::Field(Box::new(part.node), (*name).to_owned()), part.depth)?
                    }
                };
            } else if self.take("[") {
                let index = self.expression()?;
                self.expect("]")?;
                let below = part.depth.max(index.depth);
                part = self.part(CelNode::Index(Box::new(part.node), Box::new(index.node)), below)?;
            } else {
                return Ok(part);
            }
        }
    }

    fn primary(&mut self) -> Result<ParsedNode, String> {
        let leaf = match self.peek() {
            Token::Literal(value) => CelNode::Literal(value.clone()),
            Token::Ref(index) => CelNode::Ref(*index),
            Token::Word(word) => match self.tokens.get(self.at + 1) {
                Some((Token::Symbol("("), _)) => {
                    self.at += 2;
                    return self.call(word, None);
                }
                Some(_) | None => self.name(word)?,
            },
            Token::Symbol("(") => {
                self.at += 1;
                let part = self.expression()?;
                self.expect(")")?;
                return Ok(part);
            }
            Token::Symbol("[") => {
                self.at += 1;
                let items = self.list("]")?;
                let below = deepest(&items);
                return self.part(CelNode::List(items.into_iter().map(|item| item.node).collect()), below);
            }
            Token::Symbol("{") => return self.map(),
            Token::Symbol(_) | Token::End => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        self.part(leaf, 0)
    }

    fn name(&self, name: &str) -> Result<CelNode, String> {
        match name {
            "true" => return Ok(CelNode::Literal(Value::Bool(true))),
            "false" => return Ok(CelNode::Literal(Value::Bool(false))),
            "null" => return Ok(CelNode::Literal(Value::Null)),
            _ => {}
        }
        if let Some(distance) = self.locals.iter().rev().position(|local| *local == name) {
            return Ok(CelNode::Local(distance));
        }
        if TYPES.contains(&name) {
            return Ok(CelNode::Literal(name.into()));
        }
        let shown = excerpt(name);
        let reason = format!("unknown name `{shown}`: a variable is written `$var.{shown}`, text in quotes,");
        Err(self.fault(&reason))
    }

    /// Expressions with commas between them, up to `close`; one comma more does not matter.
    fn list(&mut self, close: &str) -> Result<Vec<ParsedNode>, String> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn map(&mut self) -> Result<ParsedNode, String> {
        self.at += 1;
        let mut entries = Vec::new();
        let mut below = 0;
        while !self.take("}") {
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            below = below.max(key.depth).max(value.depth);
            entries.push((key.node, value.node));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        self.part(CelNode::Map(entries), below)
    }

    /// Reads a call from behind its `(`; `a.f(b)` is `f(a, b)`.
    fn call(&mut self, name: &'a str, target: Option<ParsedNode>) -> Result<ParsedNode, String> {
        if let Some(kind) = loop_kind(name) {
            return self.loop_over(name, kind, target);
        }
        let mut args: Vec<ParsedNode> = target.into_iter().collect();
        args.extend(self.list(")")?);
        let below = deepest(&args);
        let args: Vec<CelNode> = args.into_iter().map(|arg| arg.node).collect();
        let node = function(name, args).map_err(|reason| self.fault(&reason))?;
        self.part(node, below)
    }

    fn loop_over(
        &mut self,
        name: &str,
        kind: CelMacro,
        list: Option<ParsedNode>,
    ) -> Result<ParsedNode, String> {
        let (Some(list), Token::Word(variable)) = (list, self.peek()) else {
            return Err(self.fault(&format!("`{name}` is written `list.{name}(x, condition on x)`")));
        };
        if self.locals.len() >= LOOPS_MAX {
            let reason = format!("`{name}` stands inside {LOOPS_MAX} other loops, which would take too long");
            return Err(self.fault(&reason));
        }
        self.at += 1;
        self.expect(",")?;
        self.locals.push(variable);
        let body = self.expression()?;
        self.locals.pop();
        self.expect(")")?;
        let below = list.depth.max(body.depth);
        self.part(CelNode::Loop(kind, Box::new(list.node), Box::new(body.node)), below)
    }
}

fn deepest(parts: &[ParsedNode]) -> usize {
    parts.iter().map(|part| part.depth).max().unwrap_or(0)
}

fn operator(token: &Token<'_>, level: usize) -> Option<Op> {
    let (Token::Symbol(spelled) | Token::Word(spelled)) = token else { return None };
    Some(match (level, *spelled) {
        (0, "==") => Op::Eq,
        (0, "!=") => Op::Ne,
        (0, "<") => Op::Lt,
        (0, "<=") => Op::Le,
        (0, ">") => Op::Gt,
        (0, ">=") => Op::Ge,
        (0, "in") => Op::In,
        (1, "+") => Op::Add,
        (1, "-") => Op::Sub,
        (2, "*") => Op::Mul,
        (2, "/") => Op::Div,
        (2, "%") => Op::Rem,
        _ => return None,
    })
}

fn loop_kind(name: &str) -> Option<CelMacro> {
    Some(match name {
        "all" => CelMacro::All,
        "exists" => CelMacro::Exists,
        "exists_one" => CelMacro::ExistsOne,
        "filter" => CelMacro::Filter,
        "map" => CelMacro::Map,
        _ => return None,
    })
}

fn function(name: &str, args: Vec<CelNode>) -> Result<CelNode, String> {
    let test = |test: TextTest, args| two(name, args).map(|[text, part]| CelNode::Text(test, text, part));
    let conversion = match name {
        "size" => Conversion::Size,
        "int" | "uint" => Conversion::Int,
        "double" => Conversion::Double,
        "string" => Conversion::String,
        "bool" => Conversion::Bool,
        "type" => Conversion::Type,
        "has" => return one(name, args).map(CelNode::Present),
        "dyn" => return one(name, args).map(|value| *value),
        "contains" => return test(TextTest::Contains, args),
        "startsWith" => return test(TextTest::StartsWith, args),
        "endsWith" => return test(TextTest::EndsWith, args),
        "matches" => {
            let [text, pattern] = two(name, args)?;
            return Ok(CelNode::Matches(
                text,
                match *pattern {
                    CelNode::Literal(Value::String(pattern)) => Against::Known(Pattern::compile(&pattern)?),
                    computed => Against::Computed(Box::new(computed)),
                },
            ));
        }
        unknown => {
            let hint = did_you_mean(unknown, FUNCTIONS).map(|hint| format!("; {hint}")).unwrap_or_default();
            let known = FUNCTIONS.join(", ");
            return Err(format!("unknown function `{}`{hint} (known: {known})", excerpt(unknown)));
        }
    };
    one(name, args).map(|value| CelNode::Convert(conversion, value))
}

fn one(name: &str, args: Vec<CelNode>) -> Result<Box<CelNode>, String> {
    let found = args.len();
    let [value] =
        <[CelNode; 1]>::try_from(args).map_err(|_| format!("`{name}` needs one value, not {found}"))?;
    Ok(Box::new(value))
}

fn two(name: &str, args: Vec<CelNode>) -> Result<[Box<CelNode>; 2], String> {
    let found = args.len();
    let [a, b] =
        <[CelNode; 2]>::try_from(args).map_err(|_| format!("`{name}` needs two values, not {found}"))?;
    Ok([Box::new(a), Box::new(b)])
}
