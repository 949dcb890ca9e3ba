import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { changeSettings, currentSettings, type Theme } from "../format/settings";
import { startKeys, useKeys } from "../keys/keys";
import { liveStatus, pause } from "../live/live";
import { Boundary } from "../parts/Errors";
import { IconSprite } from "../parts/Icon";
import { Skeleton } from "../parts/Panel";
import { Toasts } from "../parts/Toasts";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { KeyHelp } from "./KeyHelp";
import { foldNav, Nav, useNav } from "./Nav";
import { PageFrame } from "./PageFrame";
import { NAV_PAGES } from "./pages";
import { SignIn } from "./SignIn";

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function focusSearch() {
  document.querySelector<HTMLElement>("[data-search] input, input[data-search]")?.focus();
}

function useGlobalKeys() {
  const navigate = useNavigate();
  useEffect(startKeys, []);
  useKeys([
    { keys: "/", label: (of) => commonWords[of].keys.search, run: focusSearch },
    ...NAV_PAGES.flatMap(({ key, path, id }) =>
      key ? [{ keys: `g ${key}`, label: (of: "en" | "zh") => commonWords[of].keys.goTo(commonWords[of].nav[id]), run: () => void navigate({ to: path }) }] : []),
    { keys: ".", label: (of) => commonWords[of].keys.pause, run: () => pause(liveStatus() !== "paused") },
    { keys: "t", label: (of) => commonWords[of].keys.theme, run: () => changeSettings({ theme: NEXT_THEME[currentSettings().theme] }) },
    { keys: "[", label: (of) => commonWords[of].keys.fold, run: foldNav },
  ]);
}

/** The frame around every page. */
export function Shell() {
  const { nav: words, error } = useWords(commonWords);
  const client = useQueryClient();
  const { isFolded } = useNav();
  // The page that is shown, which follows the address.
  const page = useRouterState({ select: ({ resolvedLocation, matches }) => `${resolvedLocation?.href} ${matches.at(-1)?.id}` });
  useGlobalKeys();
  return (
    <>
      <IconSprite />
      <a className="skip" href="#main">{words.skip}</a>
      <div className={`app${isFolded ? " narrow-nav" : ""}`}>
        <Boundary><Nav /></Boundary>
        <Boundary of={page} onRetry={() => void client.resetQueries()} frame={(message) => <PageFrame title={error.title}>{message}</PageFrame>}><Suspense fallback={<div className="page"><Skeleton /></div>}><Outlet /></Suspense></Boundary>
      </div>
      <Toasts />
      <KeyHelp />
      <SignIn />
    </>
  );
}
