import { availableParallelism } from 'node:os'
import { describe, expect, test } from 'vitest'
import { yaml } from './workspace.ts'

const KEY = '0123456789abcdef'.repeat(4)

describe('listen.workers', () => {
  test.each([
    ['', 1],
    ['listen: { workers: 1, unix: /tmp/a.sock }', 1],
    ['listen: { workers: 4 }', 4],
    ['listen: { workers: auto }', availableParallelism()],
  ])('"%s" means %i', async (text, workers) => {
    await using files = await yaml(`servers: {}\n${text}\n`)
    expect(await files.load()).toMatchObject({ workers })
  })

  test.each(['0', '-1', '1.5', '61', 'many', 'true', '[2]'])('%s is refused with what may stand there', async (text) => {
    await using files = await yaml(`servers: {}\nlisten: { workers: ${text} }\n`)
    await expect(files.load()).rejects.toThrow(/listen\.workers: expected a whole number from 1 to 60, or auto/)
  })

  test.each([
    ['replicas.url', `listen: { workers: 2 }\nreplicas: { url: "http://10.0.0.3:7420" }\nstate: { key: ${KEY} }`],
    ['listen.unix', 'listen: { workers: 2, unix: /tmp/a.sock }'],
    ['listen.systemd', 'listen: { workers: auto, systemd: true }'],
  ])('several and %s exclude each other', async (other, text) => {
    await using files = await yaml(`servers: {}\n${text}\n`)
    await expect(files.load()).rejects.toThrow(new RegExp(`listen\\.workers: "workers" and ${other} exclude each other`))
  })
})
