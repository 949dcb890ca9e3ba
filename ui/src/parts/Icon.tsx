// Icons: one sprite in the document, used by name.
const PATHS = {
  accounts: "M2.75 4.25h10.5v8.5H2.75zM2.75 6.75h10.5M10 10.25h1",
  approvals: "M6.5 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2.5 13.25C3 11 4.5 10 6.5 10M9 11.25l1.75 1.75L14 9.5",
  audit: "M4 2.75h8v10.5H4zM6 5.5h4M6 8h4M6 10.5h2.5",
  canceled: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.2 11.8l7.6-7.6",
  canceling: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.25 6.25h3.5v3.5h-3.5z",
  check: "M3.5 8.5l3 3 6-7",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3l2 1.5",
  columns: "M2.75 3.25h10.5v9.5H2.75zM6.25 3.25v9.5M9.75 3.25v9.5",
  copy: "M5.5 5.5h7.75v7.75H5.5zM3 10.5h-.25V2.75h7.75V3",
  dead: "M2.5 9.5h3l1 2h3l1-2h3v3.75h-11zM6 2.75l4 4m0-4l-4 4",
  docs: "M3 3.25h4a1.5 1.5 0 0 1 1 .5 1.5 1.5 0 0 1 1-.5h4v9H9a1.5 1.5 0 0 0-1 .5 1.5 1.5 0 0 0-1-.5H3zM8 3.75v9",
  down: "M4.5 6.5L8 10l3.5-3.5",
  download: "M8 2.75v7M5 7l3 3 3-3M3 13.25h10",
  edit: "M3 13l.5-2.75 7-7 2.25 2.25-7 7z",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  flows: "M2.75 6h3.5v4h-3.5zM9.75 2.75h3.5v3.5h-3.5zM9.75 9.75h3.5v3.5h-3.5zM6.25 8h1.5V4.5h2M7.75 8v3.5h2",
  fold: "M2.75 3.25h10.5v9.5H2.75zM6 3.25v9.5M10.5 6.5L9 8l1.5 1.5",
  full: "M9.5 6.5L13 3M9.75 3H13v3.25M6.5 9.5L3 13M3 9.75V13h3.25",
  left: "M9.5 4.5L6 8l3.5 3.5",
  letters: "M2.5 9h3l1 2h3l1-2h3v4.25h-11zM2.5 9l1.75-6h7.5L13.5 9",
  mark: "M3 5.25h10M3 10.75h10M5.25 5.25v5.5M10.75 5.25v5.5M8 2.5v11",
  menu: "M2.75 4.5h10.5M2.75 8h10.5M2.75 11.5h10.5",
  minus: "M3.5 8h9",
  more: "M4 7.9v.2M8 7.9v.2M12 7.9v.2",
  overview: "M2.75 2.75h4.5v4.5h-4.5zM8.75 2.75h4.5v2.5h-4.5zM8.75 6.75h4.5v6.5h-4.5zM2.75 8.75h4.5v4.5h-4.5z",
  paused: "M6 4v8M10 4v8",
  play: "M5.5 3.5v9L12.5 8z",
  plus: "M8 3.5v9M3.5 8h9",
  queued: "M3.5 4.75h9M3.5 8h9M3.5 11.25h5",
  queues: "M8 2.5l5.5 2.75L8 8 2.5 5.25zM2.5 8L8 10.75 13.5 8M2.5 10.75L8 13.5l5.5-2.75",
  retry: "M12.75 8a4.75 4.75 0 1 1-1.5-3.45M12.75 2.5v2.75H10",
  right: "M6.5 4.5L10 8l-3.5 3.5",
  runs: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.75 5.75v4.5L10.25 8z",
  schedules: "M2.75 4h10.5v9.25H2.75zM2.75 7h10.5M5.5 2.5v2.75M10.5 2.5v2.75",
  search: "M7 2.75a4.25 4.25 0 1 0 0 8.5 4.25 4.25 0 0 0 0-8.5zM10.25 10.25l3 3",
  settings: "M2.5 5h6M11.5 5h2M2.5 11h2M7.5 11h6M10 3.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM6 9.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z",
  skipped: "M4 4.5L7.5 8 4 11.5M8.5 4.5L12 8l-3.5 3.5",
  step: "M4 4v8l5.5-4zM12 4v8",
  suspended: "M12.75 9.6A5.25 5.25 0 0 1 6.4 3.25a5.25 5.25 0 1 0 6.35 6.35z",
  unknown: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.4 6.5a1.6 1.6 0 1 1 2.3 1.5c-.5.2-.7.5-.7.9M8 10.9v.05",
  up: "M4.5 9.5L8 6l3.5 3.5",
  waiting: "M4.5 2.75h7M4.5 13.25h7M5.25 2.75v1.5C5.25 6.5 8 7 8 8s-2.75 1.5-2.75 3.75v1.5M10.75 2.75v1.5C10.75 6.5 8 7 8 8s2.75 1.5 2.75 3.75v1.5",
  warn: "M8 2.75l5.75 10.25H2.25zM8 6.5v3M8 11.2v.05",
  workers: "M4.5 4.5h7v7h-7zM6.5 2.5v2M9.5 2.5v2M6.5 11.5v2M9.5 11.5v2M2.5 6.5h2M2.5 9.5h2M11.5 6.5h2M11.5 9.5h2",
  x: "M4.5 4.5l7 7m0-7l-7 7",
} as const;

export type IconName = keyof typeof PATHS | "pending" | "running";

/** The sprite; the frame renders it once. */
export function IconSprite() {
  return (
    <svg width="0" height="0" style={{ position: "absolute" }} aria-hidden="true">
      <defs>
        {Object.entries(PATHS).map(([name, path]) => (
          <symbol key={name} id={`i-${name}`} viewBox="0 0 16 16"><path d={path} strokeWidth={["paused", "more"].includes(name) ? 2.1 : undefined} /></symbol>
        ))}
        <symbol id="i-pending" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.25" strokeDasharray="2.2 2.2" /></symbol>
        <symbol id="i-running" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.25" strokeOpacity=".3" /><path d="M8 2.75A5.25 5.25 0 0 1 13.25 8" /></symbol>
      </defs>
    </svg>
  );
}

/** An icon beside a word. It says nothing to screen readers. */
export function Icon({ name, small, className }: { name: IconName; small?: boolean; className?: string }) {
  return <svg className={`i${small ? " s" : ""}${className ? ` ${className}` : ""}`} aria-hidden="true"><use href={`#i-${name}`} /></svg>;
}
