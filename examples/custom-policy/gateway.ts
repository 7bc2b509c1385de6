/** Serves `trunkline.yaml` with the policy of `policy.ts`. A freeze is in force while the file FREEZE exists; it holds the reason. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createGateway } from '../../src/index.ts'
import { changeFreeze } from './policy.ts'

const file = process.argv[2] ?? 'FREEZE'
const freeze = (): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined)

const gateway = await createGateway({
  configuration: { files: [fileURLToPath(new URL('trunkline.yaml', import.meta.url))] },
  layers: [changeFreeze(freeze)],
})
console.log(gateway.urls[0])
process.once('SIGTERM', () => void gateway.close())
