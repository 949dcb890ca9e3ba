// Renders the guides of docs/ and the API reference into ui-dist/docs. `./x ui` runs it after the build of the console.

import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { Marked } from "marked";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "../../docs");
const target = join(here, "../../crates/server/ui-dist/docs");

const escape = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const plain = (html) =>
  html.replace(/<[^>]*>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'").replaceAll("&amp;", "&");

/** The anchor of a heading, as GitHub makes it. */
const slug = (text) =>
  text.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-");

/** The path of a page: `README.md` is the index, `adr/0001-x.md` is `adr/0001-x`. */
const pathOf = (file) => (file === "README.md" ? "index" : file.replace(/README\.md$/, "index.md").replace(/\.md$/, ""));

/** A link of a page as it is on the server; `null` if it leads outside of the documents. */
function linkOf(file, href, known) {
  if (/^[a-z]+:/i.test(href) || href.startsWith("/") || href.startsWith("#")) return href;
  const [path, anchor] = href.split("#");
  let resolved = posix.join(posix.dirname(file), path);
  if (known.has(`${resolved}/index.md`)) resolved = `${resolved}/index.md`;
  if (!known.has(resolved)) return null;
  const page = pathOf(resolved).replace(/(^|\/)index$/, "$1").replace(/\/$/, "");
  return `/docs${page ? `/${page}` : ""}${anchor ? `#${anchor}` : ""}`;
}

/** The guides, by their path below docs/. */
function readPages() {
  const names = (dir) => readdirSync(join(source, dir)).filter((name) => name.endsWith(".md")).map((name) => posix.join(dir, name));
  const pages = new Map([...names("."), ...names("adr")].sort().map((file) => [file, readFileSync(join(source, file), "utf8")]));
  if (!pages.has("adr/README.md")) {
    const title = (file) => /^# (.*)$/m.exec(pages.get(file))?.[1] ?? file;
    const decisions = [...pages.keys()].filter((file) => file.startsWith("adr/"));
    const list = decisions.map((file) => `- [${title(file)}](${posix.basename(file)})`);
    pages.set("adr/index.md", `# Design decisions\n\n${list.join("\n")}\n`);
  }
  return pages;
}

/** One page: its HTML, its title, and its sections for the search. */
function render(file, markdown, known) {
  const sections = [];
  const seen = new Map();
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const text = plain(html);
        const base = slug(text);
        const count = seen.get(base) ?? 0;
        seen.set(base, count + 1);
        const id = count === 0 ? base : `${base}-${count}`;
        sections.push({ id, title: text, text: "" });
        return `<h${depth} id="${escape(id)}">${html} <a class="anchor" href="#${escape(id)}" aria-label="Link to this section">#</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens);
        const link = linkOf(file, href, known);
        return link === null ? html : `<a href="${escape(link)}">${html}</a>`;
      },
      image({ text }) {
        return `<em>${escape(text)}</em>`;
      },
      table(token) {
        const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
        const body = token.rows.map((cells) => row(cells, "td")).join("\n");
        return `<div class="scroll" tabindex="0"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  // A code block may be wider than the page: the keyboard must be able to scroll it.
  const html = marked.parse(markdown).replaceAll("<pre>", '<pre tabindex="0">');
  // The text of each section, for the search.
  const parts = html.split(/<h[1-6] id="/).slice(1);
  parts.forEach((part, index) => {
    const body = part.slice(part.indexOf("</h") + 5);
    sections[index].text = plain(body).replace(/\s+/g, " ").trim();
  });
  return { html, title: sections[0]?.title ?? file, sections };
}

/** The parts of the index with the pages of each, for the navigation. */
function navigation(index, known) {
  const parts = [];
  for (const line of index.split("\n")) {
    const heading = /^## (.*)$/.exec(line);
    if (heading) parts.push({ title: heading[1], pages: [] });
    const link = /^\| \[([^\]]+)\]\(([^)]+)\)/.exec(line);
    const href = link && linkOf("README.md", link[2].replace(/\/$/, ""), known);
    if (href && parts.length > 0) parts.at(-1).pages.push({ href, name: link[1].replace(/\.md$/, "").replace(/\/$/, "") });
  }
  return parts;
}

function shell({ title, nav, body, here: current, scripts = [], styles = [] }) {
  const entry = ({ href, name }) =>
    `<li><a href="${escape(href)}"${href === current ? ' aria-current="page"' : ""}>${escape(name)}</a></li>`;
  const parts = nav.map(({ title: part, pages }) => `<h2>${escape(part)}</h2><ul>${pages.map(entry).join("")}</ul>`).join("");
  const tags = [...styles.map((href) => `<link rel="stylesheet" href="${href}">`), ...scripts.map((src) => `<script src="${src}" defer></script>`)];
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} · Windlass</title>
<link rel="icon" href="/ui/favicon.svg"><link rel="stylesheet" href="/docs/assets/docs.css">${tags.join("")}</head>
<body>
<header><a class="home" href="/ui/">Windlass</a> <a href="/docs">Guides</a> <a href="/docs/api">API reference</a>
<search><input id="search" type="search" autocomplete="off" aria-label="Search the guides" placeholder="Search the guides"><ol id="found" hidden></ol></search></header>
<div class="page"><nav aria-label="Guides">${parts}</nav>
<main${scripts.length > 1 ? "" : ' class="guide"'}>${body}</main></div>
</body>
</html>
`;
}

function write(path, text) {
  const file = join(target, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function build() {
  rmSync(target, { recursive: true, force: true });
  const pages = readPages();
  const known = new Set(pages.keys());
  const nav = navigation(pages.get("README.md"), known);
  nav.push({ title: "API", pages: [{ href: "/docs/api", name: "reference" }] });
  const found = [];
  for (const [file, markdown] of pages) {
    const { html, title, sections } = render(file, markdown, known);
    const path = pathOf(file).replace(/^adr\/index$/, "adr");
    const href = path === "index" ? "/docs" : `/docs/${path}`;
    write(`${path}.html`, shell({ title, nav, body: html, here: href, scripts: ["/docs/assets/search.js"] }));
    found.push(...sections.map(({ id, title: section, text }) => ({ href: `${href}#${id}`, page: title, title: section, text: text.slice(0, 1200) })));
  }
  write("search.json", JSON.stringify(found));
  const viewer = '<div id="reference"></div>';
  write("api.html", shell({
    title: "API reference", nav, body: viewer, here: "/docs/api",
    styles: ["/docs/assets/swagger-ui.css"],
    scripts: ["/docs/assets/swagger-ui-bundle.js", "/docs/assets/api.js", "/docs/assets/search.js"],
  }));
  cpSync(join(here, "assets"), join(target, "assets"), { recursive: true });
  const swagger = join(here, "node_modules/swagger-ui-dist");
  for (const name of ["swagger-ui.css", "swagger-ui-bundle.js"]) {
    const text = readFileSync(join(swagger, name), "utf8").replace(/\n?(\/\/|\/\*)# sourceMappingURL=.*$/m, "");
    write(`assets/${name}`, text);
  }
}

build();
