//! The SVG of a layout. It stands alone: its colours follow the reader's light or dark scheme, and a page that embeds it
//! may set them by variables. Everything that comes from a definition or a run is escaped.

use std::fmt::{self, Write};

use super::overlay::Tally;
use super::{Area, EdgeState, Layout, LayoutEdge, LayoutKind, LayoutNode, Overlay};
use crate::text::excerpt;

const STYLE: &str = include_str!("svg.css");
/// The radius of a line's corners.
const RADIUS: i32 = 8;

/// Draws a layout, with the states of a run if they are given.
pub fn svg(layout: &Layout, name: &str, overlay: Option<&Overlay<'_>>) -> String {
    let mut text = String::with_capacity(4_096 + 512 * layout.nodes.len() + 256 * layout.edges.len());
    // Writing to a string cannot fail.
    let _ok = write_all(&mut text, layout, name, overlay);
    text
}

fn write_all(out: &mut String, layout: &Layout, name: &str, overlay: Option<&Overlay<'_>>) -> fmt::Result {
    let (w, h) = (layout.width, layout.height);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="wl-graph" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">"#
    )?;
    writeln!(out, "<title>{}</title>", Xml(name))?;
    writeln!(out, "<style>{STYLE}</style>")?;
    for (id, class) in [("wl-arrow", "arrow"), ("wl-arrow-taken", "arrow taken")] {
        writeln!(
            out,
            r#"<marker id="{id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="{class}" d="M1 1l6 3-6 3z"/></marker>"#
        )?;
    }
    writeln!(out, r#"<rect class="page" width="{w}" height="{h}"/>"#)?;
    let tally = |ix: usize| overlay.and_then(|overlay| overlay.nodes[ix].as_ref());
    let has_run = overlay.is_some();
    for (ix, node) in layout.nodes.iter().enumerate().filter(|(_, node)| node.is_box) {
        write_box(out, node, tally(ix), has_run)?;
    }
    for (ix, edge) in layout.edges.iter().enumerate() {
        write_edge(out, edge, overlay.map_or(EdgeState::Open, |overlay| overlay.edges[ix]))?;
    }
    for (ix, node) in layout.nodes.iter().enumerate().filter(|(_, node)| !node.is_box) {
        match node.kind {
            LayoutKind::End => write_end(out, node.area)?,
            _ => write_leaf(out, node, tally(ix), has_run)?,
        }
    }
    for edge in &layout.edges {
        write_label(out, edge, layout.nodes[edge.from].parent.is_some())?;
    }
    out.write_str("</svg>\n")
}

/// The class of a node: the family of its status.
fn family(tally: Option<&Tally<'_>>, has_run: bool) -> &'static str {
    match tally.map(|tally| tally.status) {
        None if has_run => "idle",
        None => "plain",
        Some("completed") => "ok",
        Some("running") => "run",
        Some("retrying") => "retry",
        Some("failed") => "fail",
        Some("skipped") => "idle skipped",
        Some("pending" | "canceled") => "idle",
        Some("waiting" | "suspended" | "parked" | "paused") => "wait",
        Some(_) => "unknown",
    }
}

fn write_box(out: &mut String, node: &LayoutNode, tally: Option<&Tally<'_>>, has_run: bool) -> fmt::Result {
    let Area { x, y, w, h } = node.area;
    writeln!(out, r#"<g class="box {}">"#, family(tally, has_run))?;
    write_tooltip(out, node, tally)?;
    writeln!(out, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="10"/>"#)?;
    write_icon(out, icon(node, tally, has_run), x + 12, y + 9)?;
    let detail = if node.detail.is_empty() {
        String::new()
    } else {
        format!(r#"<tspan class="t2" dx="8">{}</tspan>"#, Xml(&node.detail))
    };
    writeln!(out, r#"<text class="t1" x="{}" y="{}">{}{detail}</text>"#, x + 32, y + 21, Xml(&node.short))?;
    write_badge(out, node, tally)?;
    out.write_str("</g>\n")
}

fn write_leaf(out: &mut String, node: &LayoutNode, tally: Option<&Tally<'_>>, has_run: bool) -> fmt::Result {
    let Area { x, y, w, h } = node.area;
    let start = if node.is_start && node.parent.is_none() { " start" } else { "" };
    writeln!(out, r#"<g class="node {}{start}">"#, family(tally, has_run))?;
    write_tooltip(out, node, tally)?;
    writeln!(out, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8"/>"#)?;
    // A node that has grown for its edges keeps its text in the middle.
    let top = y + (h - 44) / 2;
    write_icon(out, icon(node, tally, has_run), x + 9, top + 8)?;
    writeln!(out, r#"<text class="t1" x="{}" y="{}">{}</text>"#, x + 30, top + 19, Xml(&node.short))?;
    writeln!(out, r#"<text class="t2" x="{}" y="{}">{}</text>"#, x + 30, top + 34, Xml(&node.detail))?;
    write_badge(out, node, tally)?;
    out.write_str("</g>\n")
}

/// The place where a scope ends.
fn write_end(out: &mut String, area: Area) -> fmt::Result {
    let (r, x, y) = (area.w / 2, area.x + area.w / 2, area.y + area.h / 2);
    writeln!(
        out,
        r#"<g class="end"><circle cx="{x}" cy="{y}" r="{}"/><circle class="dot" cx="{x}" cy="{y}" r="{}"/></g>"#,
        r - 1,
        r / 2
    )
}

/// The full name and the state, for a pointer that rests on the node and for readers of screens.
fn write_tooltip(out: &mut String, node: &LayoutNode, tally: Option<&Tally<'_>>) -> fmt::Result {
    let status = tally.map(|tally| format!(", {}", tally.status)).unwrap_or_default();
    let hidden = if node.n_hidden > 0 { format!(", {} more inside", node.n_hidden) } else { String::new() };
    let (label, word) = (excerpt(&node.label), excerpt(&node.word));
    writeln!(out, "<title>{}, {}{}{hidden}</title>", Xml(&label), Xml(&word), Xml(&status))
}

/// Counts over the corner of a node: of its places, or of its attempts.
fn write_badge(out: &mut String, node: &LayoutNode, tally: Option<&Tally<'_>>) -> fmt::Result {
    let text = match tally {
        Some(tally) if tally.n > 1 => format!("{}/{}", tally.n_done, tally.n),
        Some(tally) if tally.attempts > 1 => format!("×{}", tally.attempts),
        Some(_) | None if node.n_hidden > 0 => format!("+{}", node.n_hidden),
        Some(_) | None => return Ok(()),
    };
    let w = i32::try_from(text.chars().count()).unwrap_or(0) * 7 + 10;
    let (x, y) = (node.area.x + node.area.w - w - 6, node.area.y - 8);
    write!(out, r#"<rect class="badge" x="{x}" y="{y}" width="{w}" height="16" rx="8"/>"#)?;
    writeln!(out, r#"<text class="badge-text" x="{}" y="{}">{}</text>"#, x + w / 2, y + 12, Xml(&text))
}

fn write_icon(out: &mut String, path: &str, x: i32, y: i32) -> fmt::Result {
    writeln!(out, r#"<path class="icon" transform="translate({x} {y}) scale(.875)" d="{path}"/>"#)
}

fn write_edge(out: &mut String, edge: &LayoutEdge, state: EdgeState) -> fmt::Result {
    let (class, arrow) = match state {
        EdgeState::Open => ("edge", "wl-arrow"),
        EdgeState::Taken => ("edge taken", "wl-arrow-taken"),
        EdgeState::NotTaken => ("edge not", "wl-arrow"),
    };
    write!(out, r#"<path class="{class}" marker-end="url(#{arrow})" d=""#)?;
    write_line(out, &edge.points)?;
    out.write_str("\"/>\n")
}

/// The commands of a line with round corners.
fn write_line(out: &mut String, points: &[(i32, i32)]) -> fmt::Result {
    for (at, (x, y)) in points.iter().copied().enumerate() {
        let around = at.checked_sub(1).and_then(|before| points.get(before)).zip(points.get(at + 1));
        match around {
            None if at == 0 => write!(out, "M{x} {y}")?,
            None => write!(out, "L{x} {y}")?,
            Some((before, after)) => {
                let length = |other: &(i32, i32)| (other.0 - x).abs() + (other.1 - y).abs();
                let radius = RADIUS.min(length(before) / 2).min(length(after) / 2);
                let toward = |other: &(i32, i32)| {
                    (x + (other.0 - x).signum() * radius, y + (other.1 - y).signum() * radius)
                };
                let ((ax, ay), (bx, by)) = (toward(before), toward(after));
                write!(out, "L{ax} {ay}Q{x} {y} {bx} {by}")?;
            }
        }
    }
    Ok(())
}

fn write_label(out: &mut String, edge: &LayoutEdge, is_inside: bool) -> fmt::Result {
    let Some(Area { x, y, w, h }) = edge.label_area else { return Ok(()) };
    let class = if is_inside { "label inside" } else { "label" };
    write!(out, r#"<g class="{class}"><title>{}</title>"#, Xml(&excerpt(&edge.label)))?;
    write!(out, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="4"/>"#)?;
    writeln!(out, r#"<text x="{}" y="{}">{}</text></g>"#, x + w / 2, y + 12, Xml(&edge.short))
}

/// Text as XML holds it. Characters that XML cannot hold become a replacement.
struct Xml<'t>(&'t str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            '\n' | '\r' | '\t' => f.write_char(' '),
            '\u{FFFE}' | '\u{FFFF}' => f.write_char('\u{FFFD}'),
            _ if c.is_control() => f.write_char('\u{FFFD}'),
            _ => f.write_char(c),
        })
    }
}

/// A drawing of 16 by 16: the state in a run, the kind elsewhere.
fn icon(node: &LayoutNode, tally: Option<&Tally<'_>>, has_run: bool) -> &'static str {
    match tally.map(|tally| tally.status) {
        Some("completed") => return "M3.5 8.5l3 3 6-7",
        Some("running") => return "M8 2.75A5.25 5.25 0 1 1 2.75 8",
        Some("retrying") => return "M12.75 8a4.75 4.75 0 1 1-1.5-3.45M12.75 2.5v2.75H10",
        Some("failed") => return "M4.5 4.5l7 7m0-7l-7 7",
        Some("skipped") => return "M4 4.5L7.5 8 4 11.5M8.5 4.5L12 8l-3.5 3.5",
        Some("canceled") => return "M8 2.75a5.25 5.25 0 1 1-.01 0M4.5 4.5l7 7",
        Some("waiting" | "suspended" | "parked" | "paused") => {
            return "M4.5 2.75h7M4.5 13.25h7M5.25 2.75v1.5C5.25 6.5 8 7 8 8s-2.75 1.5-2.75 3.75v1.5M10.75 2.75v1.5C10.75 6.5 8 7 8 8s2.75 1.5 2.75 3.75v1.5";
        }
        None if !has_run => {}
        Some(_) | None => return "M8 2.75a5.25 5.25 0 1 1-.01 0",
    }
    match node.kind {
        LayoutKind::Call => "M3.5 4.5L7 8l-3.5 3.5M8.5 11.5h4",
        LayoutKind::Flow => {
            "M2.75 6h3.5v4h-3.5zM9.75 2.75h3.5v3.5h-3.5zM9.75 9.75h3.5v3.5h-3.5zM6.25 8h1.5V4.5h2M7.75 8v3.5h2"
        }
        LayoutKind::Choice => "M8 2.5L13.5 8 8 13.5 2.5 8z",
        LayoutKind::Parallel => "M2.5 8h11M5.5 8V3.5h8M5.5 8v4.5h8",
        LayoutKind::Foreach => "M8 2.5l5.5 2.75L8 8 2.5 5.25zM2.5 8L8 10.75 13.5 8M2.5 10.75L8 13.5l5.5-2.75",
        LayoutKind::Subflow => "M2.75 2.75h10.5v10.5H2.75zM5.5 8h5M8 5.5v5",
        LayoutKind::Loop => "M12.75 8a4.75 4.75 0 1 1-1.5-3.45M12.75 2.5v2.75H10",
        LayoutKind::Branch => "M4 2.5v11M4 9.5c0-3 8-1 8-5M9.75 5.5L12 3.25l2.25 2.25",
        LayoutKind::Timer => "M8 2.75a5.25 5.25 0 1 1-.01 0M8 5v3l2 1.5",
        LayoutKind::Signal => "M9 2.5L4.5 9H8l-1 4.5L11.5 7H8z",
        LayoutKind::Approval => {
            "M6.5 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2.5 13.25C3 11 4.5 10 6.5 10M9 11.25l1.75 1.75L14 9.5"
        }
        LayoutKind::Compute => "M3 5.5h10M3 10.5h10M6.5 3v10M9.5 3v10",
        LayoutKind::Pass => "M3.5 8h9M9 4.5L12.5 8 9 11.5",
        LayoutKind::Return | LayoutKind::End => "M12.5 3.5v5h-8M7.5 5.5l-3 3 3 3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let text = Xml("<img src=x onerror=\"alert('1')\">&\u{0}\n").to_string();
        assert_eq!(text, "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;\u{FFFD} ");
    }

    #[test]
    fn corners_are_round_where_there_is_room() {
        let mut line = String::new();
        write_line(&mut line, &[(0, 0), (10, 0), (10, 40), (50, 40)]).unwrap();
        assert_eq!(line, "M0 0L5 0Q10 0 10 5L10 32Q10 40 18 40L50 40");
    }
}
