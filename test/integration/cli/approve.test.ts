/** `trunkline approve`: changed definitions that wait for a person (RELIABILITY T-17). */
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

test('T-17 a tool in quarantine is told in ps and the log, hidden from hosts, and comes back once approved', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    `defaults: { lock: { on_change: quarantine } }\nservers:\n  a: ${cli.fake('fickle', 'log')}\n`,
  )
  const up = await cli.up()
  await up.said(/"server":"a".*server is ready/)
  await cli.here('restart', 'a')
  await up.said(/"tool":"echo".*"onChange":"quarantine".*the definition of a tool changed/)
  await up.said(/"server":"a".*"tools":5.*server is ready/)
  expect((await cli.here('ps')).stdout).toContain('left out: a tools "echo": its definition changed (lock.on_change: quarantine)')
  expect((await cli.here('tools')).stderr).toContain('a: left out: "echo": its definition changed (lock.on_change: quarantine)')

  expect(await cli.here('approve', 'a', 'echo')).toMatchObject({ code: 0, stdout: 'approved echo\n' })
  expect(await cli.here('call', 'a__echo', 'text=after')).toMatchObject({ code: 0, stdout: 'after\n' })
})
