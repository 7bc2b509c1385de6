/** Which line of what a process printed states why it ended. */
import { expect, test } from 'vitest'
import { statedReason } from '../../../src/transport/process/output-tail.ts'

test.each([
  [
    'Node',
    [
      '/x/index.js:3',
      "throw new Error('no key')",
      '^',
      '',
      'Error: no key',
      '    at Object.<anonymous> (/x/index.js:3:7)',
      '',
      'Node.js v24.1.0',
    ],
    'Error: no key',
  ],
  [
    'Node, a module that is missing',
    [
      'node:internal/modules/cjs/loader:1386',
      '  throw err;',
      '  ^',
      '',
      "Error: Cannot find module '/x.js'",
      '    at a (b:1:1) {',
      "  code: 'MODULE_NOT_FOUND',",
      '}',
      '',
      'Node.js v22.0.0',
    ],
    "Error: Cannot find module '/x.js'",
  ],
  [
    'Node, a code in brackets',
    ['TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument', '    at x', '  [cause]: Error: inner', 'Node.js v24.1.0'],
    'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument',
  ],
  [
    'Python, chained',
    [
      'Traceback (most recent call last):',
      '  File "a.py", line 1',
      'KeyError: 1',
      '',
      'During handling of the above exception',
      'Traceback (most recent call last):',
      '  File "a.py"',
      'app.errors.ConfigError: no token',
    ],
    'app.errors.ConfigError: no token',
  ],
  [
    'any program that colours what it prints',
    [
      'starting',
      '\u001b[31mError: cannot reach\u001b[0m \u001b[1;4mdb:5432\u001b[m',
      '    at x',
      '\u001b]0;title\u0007npm ERR! bye',
    ],
    'Error: cannot reach db:5432',
  ],
  [
    'npm',
    ['npm error code E404', 'npm error 404 Not Found - GET x', 'npm error A complete log of this run can be found in: /x'],
    'npm error 404 Not Found - GET x',
  ],
  [
    'Go',
    ['panic: no config', '', 'goroutine 1 [running]:', 'main.main()', '\t/x/main.go:5', 'exit status 2'],
    'panic: no config',
  ],
  [
    'Rust',
    ["thread 'main' panicked at src/main.rs:2:5:", 'no config', 'note: run with RUST_BACKTRACE=1'],
    "thread 'main' panicked at src/main.rs:2:5:",
  ],
  [
    'Java',
    ['Exception in thread "main" java.lang.IllegalStateException: no key', '\tat a.b(C.java:1)'],
    'Exception in thread "main" java.lang.IllegalStateException: no key',
  ],
  [
    'a tool with a name',
    ['docker: Error response from daemon: no image.', '', "See 'docker run --help'."],
    'docker: Error response from daemon: no image.',
  ],
  ['lower case', ['starting', 'error: --port needs a value', 'usage: x [options]'], 'error: --port needs a value'],
  ['nothing that states it', ['reading the settings', 'no settings found', ''], 'no settings found'],
  ['nothing at all', [], undefined],
])('%s', (_, lines, stated) => {
  expect(statedReason(lines)).toBe(stated)
})
