import { describe, expect, test } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { TaskIds } from '../../../src/auth/task-ids.ts'

const KEY = Buffer.alloc(32, 1)
const ids = (...keys: Buffer[]): TaskIds => new TaskIds(new Seal({ keys: keys.length === 0 ? [KEY] : keys }))

describe('task ids', () => {
  test.each(['786512e2-9e0d', 'with.dots', '', 'ü 漢 \n', 'x'.repeat(4_000)])(
    'B177 lead back to the server and its own id %j',
    (original) => {
      const exposed = ids().expose('local', 'crm', original)
      expect(exposed).toMatch(/^t1\.crm\.[\w-]*\.[\w-]{22}$/)
      expect(ids().open('local', exposed)).toEqual({ server: 'crm', original })
    },
  )

  test('B177 open for nobody but the principal they were made for', () => {
    expect(ids().open('mallory', ids().expose('alice', 'crm', 'task-1'))).toBeUndefined()
  })

  test('B177 cannot be made without the key, nor changed', () => {
    const exposed = ids().expose('alice', 'crm', 'task-1')
    const [version, server, original, mark] = exposed.split('.')
    const forged = [
      ids(Buffer.alloc(32, 2)).expose('alice', 'crm', 'task-1'),
      [version, 'mail', original, mark].join('.'),
      [version, server, Buffer.from('task-2').toString('base64url'), mark].join('.'),
      [version, server, `${original}=`, mark].join('.'),
      `${exposed}A`,
      `${exposed}.x`,
      ['t2', server, original, mark].join('.'),
      'task-1',
      '',
    ]
    expect(forged.map((id) => ids().open('alice', id))).toEqual(forged.map(() => undefined))
  })

  test('a rotated key still opens what it made', () => {
    const rotated = ids(Buffer.alloc(32, 9), KEY)
    expect(rotated.open('alice', ids().expose('alice', 'crm', 'task-1'))).toEqual({ server: 'crm', original: 'task-1' })
  })
})
