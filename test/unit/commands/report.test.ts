/** A report shows no home folder, in any form in which a message may contain it. */
import { expect, test } from 'vitest'
import { withoutHome } from '../../../src/commands/running/report.ts'

test.each([
  ['/home/ann', 'in /home/ann/x and /home/ann', 'in ~/x and ~'],
  ['/home/ann', '{"path":"/home/ann","uri":"file:///home/ann/x"}', '{"path":"~","uri":"file://~/x"}'],
  ['/home/ann', 'in /home/annabel/x and /home/ann-2', 'in /home/annabel/x and /home/ann-2'],
  ['/home/ann lee', 'file:///home/ann%20lee/x', 'file://~/x'],
  ['C:\\Users\\ann', 'C:\\Users\\ann\\x', '~\\x'],
  ['C:\\Users\\ann', JSON.stringify({ path: 'C:\\Users\\ann\\x' }), JSON.stringify({ path: '~\\x' })],
  ['C:\\Users\\ann', JSON.stringify(JSON.stringify('C:\\Users\\ann\\x')), JSON.stringify(JSON.stringify('~\\x'))],
  ['C:\\Users\\ann', 'file:///C:/Users/ann/x', 'file:///~/x'],
  ['/', 'in / and /etc/x', 'in / and /etc/x'],
])('the home folder %j in %j', (home, text, expected) => {
  expect(withoutHome(text, home)).toBe(expected)
})
