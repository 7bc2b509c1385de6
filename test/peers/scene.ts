/** Makes what real servers work on: `scene.ts FOLDER`. A repository whose one commit is always the same, and a cluster that is not there. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder = '.'] = process.argv.slice(2)
const repository = join(folder, 'repository')
mkdirSync(repository, { recursive: true })
writeFileSync(join(repository, 'file.txt'), 'one line\n')
const date = '2026-01-01T00:00:00Z'
const env = { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date, GIT_CONFIG_GLOBAL: '', GIT_CONFIG_NOSYSTEM: '1' }
const git = (...args: string[]): Buffer =>
  execFileSync('git', ['-c', 'user.name=Peer', '-c', 'user.email=peer@example.com', ...args], { cwd: repository, env })
git('init', '--quiet', '--initial-branch=main')
git('add', 'file.txt')
git('commit', '--quiet', '--message', 'First')

const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'nowhere', cluster: { server: 'http://127.0.0.1:9' } }],
  users: [{ name: 'peer', user: {} }],
  contexts: [{ name: 'nowhere', context: { cluster: 'nowhere', user: 'peer' } }],
  'current-context': 'nowhere',
}
writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig))
