//! Members without lines: rows across the layers, one after another.

use super::{Arrangement, Extent, Spacing, Spot};

pub(super) fn arrange(members: &[Extent], spacing: &Spacing) -> Arrangement {
    let mut spots = Vec::with_capacity(members.len());
    let mut whole = Extent { main: 0, cross: 0 };
    let mut main = 0;
    for row in members.chunks(spacing.row.max(1)) {
        let thickness = row.iter().map(|member| member.main).max().unwrap_or(0);
        let mut cross = 0;
        for extent in row {
            spots.push(Spot { main, cross, extent: *extent });
            cross += extent.cross + spacing.member_gap;
        }
        whole.cross = whole.cross.max(cross - spacing.member_gap);
        whole.main = main + thickness;
        main = whole.main + spacing.member_gap;
    }
    Arrangement { extent: whole, spots, routes: Vec::new() }
}
