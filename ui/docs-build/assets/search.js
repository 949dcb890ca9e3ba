// The search of the guides: every word must occur; hits in titles come first.
const input = document.getElementById("search");
const list = document.getElementById("found");
let sections;

async function load() {
  sections ??= fetch("/docs/search.json").then((answer) => {
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  });
  return sections;
}

function say(text) {
  const item = document.createElement("li");
  item.textContent = text;
  list.replaceChildren(item);
  list.hidden = false;
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
  let all = [];
  try {
    if (words.length > 0) all = await load();
  } catch {
    // The next key asks again.
    sections = undefined;
    say("The search needs the server, which does not answer.");
    return;
  }
  const hits = all
    .map((section) => ({ section, points: score(section, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
    .slice(0, 20);
  list.replaceChildren(...hits.map(({ section }) => show(section)));
  list.hidden = words.length === 0;
  if (words.length > 0 && hits.length === 0) say("No guide has all these words.");
}

input.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") list.hidden = true;
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) {
    event.preventDefault();
    input.focus();
  }
});
