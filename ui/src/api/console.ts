// The types of the console's own routes.

export interface Tile { count: number; more?: boolean }

export interface Attention {
  kind: string;
  subject: string;
  text: string;
  count?: number | null;
  since?: string | null;
  command?: string | null;
}

export interface ServiceLoad { name: string; queued: number; running: number; n_workers: number; capacity: number }

export interface Overview {
  at: string;
  tiles: {
    running: Tile; queued: Tile; waiting: Tile; failed_24h: Tile; dead_letters: Tile; approvals: Tile;
    workers: { online: number; stale: number; draining: number };
  };
  services: ServiceLoad[];
  attention: Attention[];
  is_empty: boolean;
}

export interface About {
  version: string;
  store: { kind: string; bytes?: number | null };
  server: string;
  project: string;
  up_ms: number;
  settings: Record<string, unknown>;
}

export interface SearchHit { kind: string; id: string; title: string; status?: string }
