import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { Boundary } from "../parts/Errors";
import { Icon } from "../parts/Icon";
import { Find } from "./Find";
import { LiveDot } from "./LiveDot";
import { MenuButton } from "./Nav";

interface PageFrameProps {
  /** The name of the page, in the header and in the title of the window. */
  title: string;
  /** A detail page: the list it belongs to. The title is then no heading: the page has its own. */
  parent?: { to: string; label: string };
  /** Follows the title of a detail page, such as the end of an id. */
  suffix?: ReactNode;
  /** Buttons at the right end of the header. */
  actions?: ReactNode;
  /** The main part without padding. */
  flush?: boolean;
  children: ReactNode;
}

/** The header and the main part of a page. */
export function PageFrame({ title, parent, suffix, actions, flush, children }: PageFrameProps) {
  const client = useQueryClient();
  useEffect(() => {
    document.title = `${title} · Windlass`;
  }, [title]);
  return (
    <div className="page">
      <header className="top">
        <MenuButton />
        <div className="crumb">
          {parent ? <><Link to={parent.to}>{parent.label}</Link><Icon name="right" small /><b className="cut">{title}{suffix && <span className="faint"> {suffix}</span>}</b></> : <h1>{title}</h1>}
        </div>
        <span className="grow" />
        <LiveDot />
        <Find />
        {actions && <div className="slot">{actions}</div>}
      </header>
      <main id="main" tabIndex={-1} className={flush ? "flush" : undefined}><Boundary key={title} onRetry={() => void client.resetQueries()}>{children}</Boundary></main>
    </div>
  );
}
