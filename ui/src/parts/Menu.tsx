import { type ReactNode, useId, useRef, useState } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon } from "./Icon";

/** Puts a popover under its button, inside of the window. */
function place(button: HTMLElement, menu: HTMLElement) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = Math.min(Math.max(8, at.right - width), innerWidth - width - 8);
  const below = at.bottom + 4;
  const top = below + height > innerHeight - 8 ? Math.max(8, at.top - height - 4) : below;
  menu.style.left = `${Math.max(8, left) + scrollX}px`;
  menu.style.top = `${top + scrollY}px`;
}

/** A button with a popover. The content closes it with the function that it gets. */
export function Menu({ button, label, className = "btn sm", children }: { button?: ReactNode; label?: string; className?: string; children: (close: () => void) => ReactNode }) {
  const words = useWords(commonWords).action;
  const id = useId();
  const trigger = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button ref={trigger} type="button" className={button ? className : `${className} icon`} popoverTarget={id} aria-label={button ? label : (label ?? words.more)} aria-expanded={isOpen}>
        {button ?? <Icon name="more" />}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        className="menu"
        onToggle={(event) => {
          const open = (event.nativeEvent as ToggleEvent).newState === "open";
          setOpen(open);
          if (open && trigger.current && menu.current) place(trigger.current, menu.current);
        }}
      >
        {isOpen && children(() => menu.current?.hidePopover())}
      </div>
    </>
  );
}
