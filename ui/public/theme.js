// Sets the theme and the language of the document before the first paint; the page loads it as a blocking script,
// because the Content-Security-Policy allows no inline script.
(function () {
  try {
    var theme = localStorage.getItem("windlass.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    var language = localStorage.getItem("windlass.language") || navigator.language || "en";
    document.documentElement.lang = language.slice(0, 2) === "zh" ? "zh-CN" : "en";
  } catch (error) {
    // Storage may be forbidden; the system's theme and English stay.
  }
})();
