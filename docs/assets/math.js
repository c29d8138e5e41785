/* Typeset the formulas of a page with the copy of KaTeX beside this file. */
for (const formula of document.querySelectorAll(".arithmatex")) {
  const text = formula.textContent;
  katex.render(text.slice(2, -2), formula, { displayMode: text.startsWith("\\["), throwOnError: false });
}
