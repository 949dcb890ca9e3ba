import { lazy, Suspense, useEffect, useState } from "react";
import { onUnauthorized } from "../api/client";

const SignInDialog = lazy(() => import("./SignInDialog").then((module) => ({ default: module.SignInDialog })));

/** Asks for a token when the server refuses a request without one; the page behind keeps its state. */
export function SignIn() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => onUnauthorized(() => setOpen(true)), []);
  return isOpen ? <Suspense><SignInDialog onClose={() => setOpen(false)} /></Suspense> : null;
}
