import { useEffect, useState } from "react";
import { onUnauthorized } from "../api/client";
import { Later } from "./Later";

const load = () => import("./SignInDialog").then((module) => module.SignInDialog);

/** Asks for a token when the server refuses a request without one; the page behind keeps its state. */
export function SignIn() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => onUnauthorized(() => setOpen(true)), []);
  return isOpen ? <Later load={load} onClose={() => setOpen(false)} /> : null;
}
