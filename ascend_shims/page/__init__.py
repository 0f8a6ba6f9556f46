"""The report as one page to look at: gathered as a value, and filled into a template.

    registry, checked releases, report, answers ─> gather ─> Page ─> fill ─> HTML

`page.html`, `page.css` and `page.js` lie beside this as they are served: nothing is
built. They are filled in whole, so that the page needs nothing but itself.
"""
