//! The text drawing of a layout: boxes and lines of a terminal's characters.

use super::label::{cells, is_wide};
use super::{Area, Direction, Layout, LayoutKind, LayoutNode, layout_in_cells};
use crate::plan::Plan;

/// Cells of the largest drawing; a larger one is of no use in a terminal.
const CELLS_MAX: i32 = 4_000_000;

/// Directions in which the lines of a cell lead.
const UP: u8 = 1;
const RIGHT: u8 = 2;
const DOWN: u8 = 4;
const LEFT: u8 = 8;

/// Draws a plan as text; `None` if it is too large. Lines end with their last character that can be seen.
pub fn ascii(plan: &Plan, direction: Direction) -> Option<String> {
    let layout = layout_in_cells(plan, direction);
    layout.width.checked_mul(layout.height).filter(|cells| *cells <= CELLS_MAX)?;
    let mut canvas = Canvas::new(layout.width, layout.height);
    canvas.draw(&layout);
    Some(canvas.text())
}

/// The cells of a terminal that a line takes.
pub fn columns(line: &str) -> i32 {
    line.chars().map(cells).sum()
}

struct Canvas {
    width: usize,
    lines: Vec<u8>,
    /// Characters over the lines; the second cell of a wide one is `\0`.
    chars: Vec<Option<char>>,
}

impl Canvas {
    fn new(width: i32, height: i32) -> Canvas {
        let (width, height) = (usize::try_from(width).unwrap_or(0), usize::try_from(height).unwrap_or(0));
        Canvas { width, lines: vec![0; width * height], chars: vec![None; width * height] }
    }

    fn draw(&mut self, layout: &Layout) {
        for node in layout.nodes.iter().filter(|node| node.kind != LayoutKind::End) {
            self.draw_frame(node.area);
        }
        for edge in &layout.edges {
            for pair in edge.points.windows(2) {
                self.draw_line(pair[0], pair[1]);
            }
        }
        for edge in &layout.edges {
            // The head stands before the border where the line ends.
            if let [.., from, to] = edge.points[..] {
                let is_across = from.1 == to.1;
                let head = if is_across {
                    (to.0 - (to.0 - from.0).signum(), to.1)
                } else {
                    (to.0, to.1 - (to.1 - from.1).signum())
                };
                self.put(head, arrow(layout.direction));
                self.cut_line(to, if is_across { LEFT } else { UP });
            }
            if let Some(area) = edge.label_area {
                self.write((area.x, area.y), &edge.short);
            }
        }
        for node in &layout.nodes {
            self.draw_text(node);
        }
    }

    fn draw_text(&mut self, node: &LayoutNode) {
        let Area { x, y, h, .. } = node.area;
        if node.kind == LayoutKind::End {
            self.put((x, y), '◉');
        } else if node.is_box {
            self.write((x + 2, y), &format!(" {} ", node.short));
            self.write((x + 2, y + 1), &node.detail);
        } else {
            let top = y + (h - 4) / 2;
            self.write((x + 2, top + 1), &node.short);
            self.write((x + 2, top + 2), &node.detail);
            if node.is_start && node.parent.is_none() {
                self.put((x, y), '●');
            }
        }
    }

    fn at(&self, (x, y): (i32, i32)) -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        (x < self.width && y * self.width < self.lines.len()).then(|| y * self.width + x)
    }

    fn put(&mut self, place: (i32, i32), c: char) {
        if let Some(at) = self.at(place) {
            self.chars[at] = Some(c);
        }
    }

    fn write(&mut self, (mut x, y): (i32, i32), text: &str) {
        for c in text.chars().filter(|c| cells(*c) > 0) {
            self.put((x, y), c);
            if is_wide(c) {
                self.put((x + 1, y), '\0');
            }
            x += cells(c);
        }
    }

    fn draw_frame(&mut self, Area { x, y, w, h }: Area) {
        let (right, bottom) = (x + w - 1, y + h - 1);
        // A box hides the lines below it.
        for (from, to) in [
            ((x, y), (right, y)),
            ((x, bottom), (right, bottom)),
            ((x, y), (x, bottom)),
            ((right, y), (right, bottom)),
        ] {
            self.draw_line(from, to);
        }
    }

    fn draw_line(&mut self, from: (i32, i32), to: (i32, i32)) {
        let step = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
        let (ahead, back) = match step {
            (1, _) => (RIGHT, LEFT),
            (-1, _) => (LEFT, RIGHT),
            (_, 1) => (DOWN, UP),
            _ => (UP, DOWN),
        };
        let mut here = from;
        while here != to {
            self.mark(here, ahead);
            here = (here.0 + step.0, here.1 + step.1);
            self.mark(here, back);
        }
    }

    fn mark(&mut self, place: (i32, i32), direction: u8) {
        if let Some(at) = self.at(place) {
            self.lines[at] |= direction;
        }
    }

    /// Takes away what joins a line to the border where it ends: its head says it.
    fn cut_line(&mut self, place: (i32, i32), direction: u8) {
        if let Some(at) = self.at(place) {
            self.lines[at] &= !direction;
        }
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(self.lines.len());
        for (lines, chars) in self.lines.chunks(self.width.max(1)).zip(self.chars.chunks(self.width.max(1))) {
            for (line, c) in lines.iter().zip(chars) {
                match c {
                    Some('\0') => {}
                    Some(c) => text.push(*c),
                    None => text.push(line_char(*line)),
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

fn arrow(direction: Direction) -> char {
    match direction {
        Direction::LeftRight => '▶',
        Direction::TopDown => '▼',
    }
}

fn line_char(line: u8) -> char {
    const CHARS: [char; 16] =
        [' ', '│', '─', '╰', '│', '│', '╭', '├', '─', '╯', '─', '┴', '╮', '┤', '┬', '┼'];
    CHARS[usize::from(line & 15)]
}
