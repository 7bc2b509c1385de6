import { expect, test } from 'vitest'
import { failureOfStatus } from '../../../src/transport/http1/client/http-failure.ts'
import { shownLocation } from '../../../src/transport/http1/client/http-reply.ts'
import { leastMs } from '../../support/cpu.ts'

const told = (body: string): string => failureOfStatus({ status: 502, headers: {} }, false, 0, Buffer.from(body)).message

test.each([
  [
    '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>',
    'the server answered HTTP 502: "502 Bad Gateway nginx"',
  ],
  [
    '<script>alert(1)</script><!-- x --><p>Access&nbsp;denied by &quot;policy&quot; 7 &lt;corp&gt;',
    'the server answered HTTP 502: "Access denied by "policy" 7 <corp>"',
  ],
  ['{"error":"no upstream"}', 'the server answered HTTP 502: "{"error":"no upstream"}"'],
  ['a < b and c > d', 'the server answered HTTP 502: "a < b and c > d"'],
  ['\u001b[31mred\u202e\u0007', 'the server answered HTTP 502: "[31mred"'],
  ['x'.repeat(200), `the server answered HTTP 502: "${'x'.repeat(200)}"`],
  ['shown<title>a</title>, too', 'the server answered HTTP 502: "shown , too"'],
  ['</title>a<title>b</title>c', 'the server answered HTTP 502: "a c"'],
  ['ä'.repeat(201), `the server answered HTTP 502: "${'ä'.repeat(200)}…"`],
  ['x y '.repeat(51), `the server answered HTTP 502: "${'x y '.repeat(50)}…"`],
  ['', 'the server answered HTTP 502'],
  ['<html></html>', 'the server answered HTTP 502'],
  ['<style>a<script>b</script >c</STYLE\n>d<head>e<!-- f', 'the server answered HTTP 502: "d e<!-- f"'],
])('the error page of a proxy is quoted as text: %j', (page, expected) => {
  expect(told(page)).toBe(expected)
})

test.each(['<a', '<!--', '<head ', '<style><head></head ', '<p <'])(
  'T-27 an error page of %j only is read within 50 ms per 64 KiB',
  (tag) => {
    const page = tag.repeat(16_384 / tag.length)
    expect(leastMs(() => told(page), 50 / 4)).toBeLessThan(50 / 4)
  },
)

test('where a redirect leads is named without user information and query', () => {
  const shown = (location: string | undefined): string =>
    shownLocation(location, URL.parse(location ?? '', 'https://mcp.example/mcp'))
  expect(shown('https://u:p@login.example/sso?state=secret#x')).toBe('"https://login.example/sso"')
  expect(shown('/mcp/')).toBe('"https://mcp.example/mcp/"')
  expect(shown(undefined)).toBe('nowhere (no Location)')
})

test('T-14 no secret is cut in the middle: its beginning would not be recognized', () => {
  const filler = 'word '.repeat(37)
  expect(told(`${filler}token: sk-live-0123456789abcdef and more`)).toBe(`the server answered HTTP 502: "${filler}token: …"`)
  expect(told(`{"authorization":"${'x'.repeat(160)}","key":"sk-live-0123456789abcdef0123456789"}`)).not.toContain('sk-live')
  expect(told('sk-live-0123456789'.repeat(20))).toBe('the server answered HTTP 502: "…"')
})
