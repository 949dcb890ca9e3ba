// The way of an edge as an SVG path: axis-parallel segments with rounded corners.

const RADIUS = 8;

type Point = [number, number];

export function pathOf(points: readonly number[][]): string {
  const [first, ...rest] = points.map(([x = 0, y = 0]): Point => [x, y]);
  if (!first) return "";
  let path = `M${first[0]} ${first[1]}`;
  rest.forEach((point, n) => {
    const before = n === 0 ? first : (rest[n - 1] ?? first);
    const after = rest[n + 1];
    if (!after) {
      path += `L${point[0]} ${point[1]}`;
      return;
    }
    const radius = Math.min(RADIUS, length(before, point) / 2, length(point, after) / 2);
    const [enter, leave] = [toward(point, before, radius), toward(point, after, radius)];
    path += `L${enter[0]} ${enter[1]}Q${point[0]} ${point[1]} ${leave[0]} ${leave[1]}`;
  });
  return path;
}

function length(a: [number, number], b: [number, number]): number {
  return Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]);
}

function toward(from: [number, number], to: [number, number], by: number): [number, number] {
  return [from[0] + Math.sign(to[0] - from[0]) * by, from[1] + Math.sign(to[1] - from[1]) * by];
}
