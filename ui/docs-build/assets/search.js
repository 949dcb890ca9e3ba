// The search of the guides: every word must occur; hits in titles come first.
const input = document.getElementById("search");
const list = document.getElementById("found");
let sections;

async function load() {
  sections ??= fetch("/docs/search.json").then((answer) => answer.json());
  return sections;
}

function score(section, words) {
  const title = `${section.page} ${section.title}`.toLowerCase();
  const text = section.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const points = (section.title.toLowerCase().includes(word) ? 5 : 0) + (title.includes(word) ? 3 : 0) + (text.includes(word) ? 1 : 0);
    if (points === 0) return 0;
    sum += points;
  }
  return sum;
}

function show(section) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = section.href;
  link.textContent = section.title === section.page ? section.page : `${section.page} › ${section.title}`;
  const text = document.createElement("small");
  text.textContent = section.text.slice(0, 160);
  item.append(link, text);
  return item;
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = words.length === 0 ? [] : await load();
  const hits = all
    .map((section) => ({ section, points: score(section, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
    .slice(0, 20);
  list.replaceChildren(...hits.map(({ section }) => show(section)));
  if (words.length > 0 && hits.length === 0) {
    const none = document.createElement("li");
    none.textContent = "No guide has all these words.";
    list.append(none);
  }
  list.hidden = words.length === 0;
}

input.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") list.hidden = true;
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) {
    event.preventDefault();
    input.focus();
  }
});
