import { Link, useRouterState } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import { store, stored } from "../api/client";
import { counted } from "../format/number";
import { Icon } from "../parts/Icon";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { NAV_PAGES, type NavPage } from "./pages";
import { useOverview } from "./overview";

let nav = { isFolded: stored("windlass.nav") === "folded", isOpen: false };
const listeners = new Set<() => void>();

function change(next: Partial<typeof nav>) {
  nav = { ...nav, ...next };
  store("windlass.nav", nav.isFolded ? "folded" : undefined);
  for (const listener of listeners) listener();
}

export function useNav() {
  return useSyncExternalStore((listener) => { listeners.add(listener); return () => listeners.delete(listener); }, () => nav);
}

export const foldNav = () => change({ isFolded: !nav.isFolded });
export const closeNav = () => nav.isOpen && change({ isOpen: false });

/** Opens the navigation at phone width. */
export function MenuButton() {
  const words = useWords(commonWords).nav;
  return <button type="button" className="btn icon quiet narrow" aria-label={words.menu} onClick={() => change({ isOpen: true })}><Icon name="menu" /></button>;
}

function useCounts(): Partial<Record<NavPage["id"], { count: number; more?: boolean }>> {
  const tiles = useOverview().data?.tiles;
  return { runs: tiles?.running, deadLetters: tiles?.dead_letters, approvals: tiles?.approvals };
}

export function Nav() {
  const words = useWords(commonWords).nav;
  const { isOpen } = useNav();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const counts = useCounts();
  const about = useOverview().about;
  const isCurrent = (page: NavPage) => {
    if (page.path === "/") return path === "/" || path === "/ui" || path === "/ui/";
    const bare = path.replace(/^\/ui/, "");
    return bare === page.path || bare.startsWith(`${page.path}/`) || (page.id === "flows" && bare.startsWith("/editor")) ||
      (page.id === "runs" && (bare.startsWith("/bulk") || bare.startsWith("/start"))) || (page.id === "queues" && bare.startsWith("/jobs"));
  };
  return (
    <>
      <nav className={`side${isOpen ? " open" : ""}`} aria-label={words.main}>
        <div className="brand"><Icon name="mark" /><span>Windlass</span>{about && about.project !== "default" && <small>{about.project}</small>}</div>
        {NAV_PAGES.map((page) => (
          <NavLink key={page.id} page={page} label={words[page.id]} isCurrent={isCurrent(page)} count={counts[page.id]} />
        ))}
        <a href="/docs/"><Icon name="docs" /><span>{words.docs}</span></a>
        <footer>{about && <><span>windlass {about.version}</span>{about.servers?.length > 1 && <span>{words.servers(about.servers.length)}</span>}</>}</footer>
        <button type="button" className="fold wide" onClick={foldNav}><Icon name="fold" small /><span>{words.fold}</span></button>
      </nav>
      {isOpen && <div className="shade narrow" onClick={() => closeNav()} />}
    </>
  );
}

function NavLink({ page, label, isCurrent, count }: { page: NavPage; label: string; isCurrent: boolean; count?: { count: number; more?: boolean } }) {
  const isHot = page.id === "approvals";
  return (
    <>
      {page.apart && <hr />}
      <Link to={page.path} activeProps={{}} aria-current={isCurrent ? "page" : undefined} title={label} onClick={() => closeNav()}>
        <Icon name={page.icon} /><span>{label}</span>
        {count !== undefined && count.count > 0 && <b className={isHot ? "hot" : undefined}>{counted(count)}</b>}
      </Link>
    </>
  );
}
