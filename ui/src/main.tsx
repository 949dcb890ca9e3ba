import { notifyManager, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { router } from "./app/router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";

// The unprefixed paths belong to other surfaces of the server: pages live under /ui/.
if (!location.pathname.startsWith("/ui/")) {
  history.replaceState(null, "", `/ui${location.pathname}${location.search}${location.hash}`);
}

// A patch of the event stream reaches the page in the same task.
notifyManager.setScheduler(queueMicrotask);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: false,
      // A refusal is final; a server that restarts answers soon.
      retry: (failures, error) => !(error instanceof ApiError && error.status >= 400 && error.status < 500) && failures < 2,
      retryDelay: (failures) => 400 * 2 ** failures,
    },
  },
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(<QueryClientProvider client={client}><RouterProvider router={router} /></QueryClientProvider>);
}
