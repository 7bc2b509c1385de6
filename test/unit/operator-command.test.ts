import { expect, test } from 'vitest'
import { operatorCommand } from '../../src/operator-command.ts'

test.each([
  [[], ['tools'], 'trunkline tools'],
  [['a.yaml', './b.yaml'], ['plan', '--json'], 'trunkline plan --json -c a.yaml -c ./b.yaml'],
  [['my file.yaml'], ['why', "it's"], `trunkline why 'it'\\''s' -c 'my file.yaml'`],
  [[], [''], "trunkline ''"],
  [['my.yaml'], ['add', 'files', '--', 'npx', '-y', 'x', '--', '.'], 'trunkline add files -c my.yaml -- npx -y x -- .'],
  [['C:\\x@1%=+~.yaml'], [], 'trunkline -c C:\\x@1%=+~.yaml'],
])('of the files %j and the words %j is %s', (named, words, command) => {
  expect(operatorCommand(named, ...words)).toBe(command)
})
