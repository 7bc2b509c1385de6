/**
 * The HTML frame and the headers of every page: no scripts, no external resources, one style that the content security policy names by its
 * digest. Follows the browser's light or dark scheme, from 320 px of width; colour only for errors.
 */
import { hash } from 'node:crypto'

const STYLE = `
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--ground:#fff;--raised:#f6f8fa;--link:#0550ae;--bad:#a40e26;font-size:clamp(1rem,.82rem + .32vw,1.75rem)}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b3;--line:#3d444d;--ground:#0d1117;--raised:#161b22;--link:#79c0ff;--bad:#ff9492}}
*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--ground)}
main{max-width:46rem;margin:0 auto;padding:clamp(1.5rem,6vh,5rem) 1rem 3rem}
main.narrow{max-width:32rem;padding-top:15vh}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2.25rem 0 .5rem}
p{margin:.5rem 0}.soft{color:var(--soft)}.bad{color:var(--bad)}
a{color:var(--link)}
code,pre{font:.875rem/1.5 ui-monospace,monospace}
pre{margin:.5rem 0;padding:.75rem;background:var(--raised);border:1px solid var(--line);border-radius:.375rem;white-space:pre-wrap;overflow-wrap:anywhere}
details{border:1px solid var(--line);border-radius:.375rem;margin:.5rem 0}
summary{padding:.5rem .75rem;cursor:pointer}details[open]>summary{border-bottom:1px solid var(--line)}details>div{padding:.25rem .75rem .5rem}
ul{list-style:none;margin:.5rem 0;padding:0}
li{display:flex;flex-wrap:wrap;gap:.125rem 1rem;align-items:baseline;padding:.5rem 0;border-bottom:1px solid var(--line)}
li>:first-child{font-weight:600;flex:1 1 10rem;overflow-wrap:anywhere}
label{display:block;margin:.5rem 0 .25rem}
input{font:inherit;width:100%;padding:.5rem;color:inherit;background:var(--ground);border:1px solid var(--soft);border-radius:.375rem}
button{font:inherit;margin-top:.75rem;padding:.5rem 1.25rem;color:inherit;background:var(--raised);border:1px solid var(--soft);border-radius:.375rem;cursor:pointer}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
footer{margin-top:3rem;font-size:.875rem;color:var(--soft)}
`

/** Returns the headers of a page. `leadsTo`: another origin that a form may lead to; `any`: any origin, because of redirects. */
export const pageHeaders = (leadsTo: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'none'",
    ...(leadsTo === 'any' ? [] : [`form-action 'self' ${leadsTo}`.trimEnd()]),
  ].join('; '),
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // With "no-referrer" a browser would post the form with `Origin: null`.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
})

/** Returns a page with `title` as its heading. `body`: HTML. The empty icon keeps browsers from requesting one. */
export const page = (title: string, body: string, kind: 'narrow' | 'wide' = 'wide'): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>${escaped(title)}</title><style>${STYLE}</style></head><body><main${kind === 'narrow' ? ' class="narrow"' : ''}><h1>${escaped(title)}</h1>${body}</main></body></html>\n`

export const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
