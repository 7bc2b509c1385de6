/** Files of hosts from the corpus, laid into a home folder and a project of one test. */
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { STATE_FOLDERS } from '../../support/memory-folder.ts'

export const CORPUS = fileURLToPath(new URL('../../corpus/host-files/', import.meta.url))

export interface HostsHome extends AsyncDisposable {
  readonly home: string
  readonly project: string
  readonly state: string
  readonly around: {
    readonly env: Record<string, string>
    readonly home: string
    readonly cwd: string
    readonly platform: 'linux'
  }
  write(path: string, text: string): Promise<string>
  /** Every file below home and project with its bytes, by path. */
  files(): Promise<ReadonlyMap<string, string>>
}

/** `hosts`: folders of the corpus. */
export const hostsHome = async (hosts: readonly string[] = [], env: Record<string, string> = {}): Promise<HostsHome> => {
  const root = await realpath(await mkdtemp(join(STATE_FOLDERS, 'trunkline-hosts-')))
  const [home, project, state] = [join(root, 'home'), join(root, 'project'), join(root, 'state')]
  await Promise.all([home, project].map((folder) => mkdir(folder)))
  for (const host of hosts)
    for (const part of ['home', 'project'])
      await cp(join(CORPUS, host, part), join(root, part), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
  const claude = join(home, '.claude.json')
  if (hosts.includes('claude-code')) await writeFile(claude, (await readFile(claude, 'utf8')).replace('/PROJECT', project))
  const files = async (): Promise<ReadonlyMap<string, string>> => {
    const found = await Promise.all(
      [home, project].map(async (folder) => {
        const entries = await readdir(folder, { recursive: true, withFileTypes: true })
        return Promise.all(
          entries
            .filter((entry) => entry.isFile())
            .map(async (entry) => {
              const path = join(entry.parentPath, entry.name)
              return [path, await readFile(path, 'latin1')] as const
            }),
        )
      }),
    )
    return new Map(found.flat().sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  return {
    home,
    project,
    state,
    around: { env, home, cwd: project, platform: 'linux' },
    write: async (path, text) => {
      const file = join(root, path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
      return file
    },
    files,
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}
