/** Hosts on the official SDKs with their own OAuth flows, at a real provider: from the first 401 to the call of a tool through Trunkline. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Browser } from 'playwright-core'
import type { TestGateway } from '../../support/gateway.ts'
import { environment, HERE, makeEnvironment } from '../languages.ts'
import type { Command } from '../languages.ts'
import { readLine } from './hosts/lines.ts'
import type { Line } from './hosts/lines.ts'
import { HOST_CLIENT } from './provider.ts'
import type { ProviderKind } from './provider.ts'

interface Host {
  readonly name: string
  /** It requests `offline_access` by itself where the provider lists it. */
  readonly asksToStay: boolean
  readonly command: () => Command
}

const python = (lock: string) => (): Command => [`${environment(lock)}/bin/python`, `${HERE}idp/hosts/host.py`]
const typescript = (file: string) => (): Command => [process.execPath, `${HERE}idp/hosts/${file}.ts`]
const HOSTS: readonly Host[] = [
  { name: 'TypeScript SDK 1', asksToStay: false, command: typescript('sdk1') },
  { name: 'TypeScript SDK 2', asksToStay: true, command: typescript('sdk2') },
  { name: 'Python SDK 1', asksToStay: false, command: python('mcp1') },
  { name: 'Python SDK 2', asksToStay: true, command: python('fastmcp4') },
]

export const setUpHosts = async (): Promise<void> => {
  await Promise.all(['mcp1', 'fastmcp4'].map(makeEnvironment))
}

const LIMIT_MS = 120_000

export interface Flows {
  readonly kind: ProviderKind
  readonly gateway: TestGateway
  readonly browser: Browser
  /** Hosts register with Trunkline; else each gets the client id that the administrator registered. */
  readonly isProxied: boolean
  readonly seen: (sentence: string, isSeen: boolean) => void
}

export const playHosts = async (flows: Flows): Promise<void> => {
  const { kind, isProxied, seen } = flows
  const way = isProxied ? 'registered at Trunkline' : `with the client id ${HOST_CLIENT}`
  for (const { name, asksToStay, command } of HOSTS) {
    const end = await play(command(), flows)
    const isIn = 'tools' in end && end.tools.includes('shared__echo') && !end.text.includes('"isError":true')
    const why = isIn ? '' : `: ${JSON.stringify(end).slice(0, 400)}`
    seen(`${name} at ${kind.name}, ${way}: signs in, lists and calls a tool${why}`, isIn)
    const stays = isProxied || asksToStay || kind.staysUnasked
    if ('tools' in end && end.renewed !== undefined && stays)
      seen(`${name} at ${kind.name}, ${way}: renews its token`, end.renewed)
  }
}

/** The program of a host, and bob at the pages that it sends him to. Resolves with the last line that it printed. */
const play = async ([program = '', ...args]: Command, { kind, gateway, browser, isProxied }: Flows): Promise<Line> => {
  const own = [...args, gateway.url.href, ...(isProxied ? [] : [HOST_CLIENT])]
  const child = spawn(program, own, { stdio: ['ignore', 'pipe', 'pipe'], signal: AbortSignal.timeout(LIMIT_MS) })
  child.on('error', () => undefined)
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const context = await browser.newContext()
  try {
    for await (const text of createInterface({ input: child.stdout })) {
      const line = readLine(text)
      if (!('open' in line)) return line
      const page = await context.newPage()
      await page.goto(line.open)
      if (isProxied) await page.getByRole('button', { name: 'Allow' }).click()
      await kind.login(page, 'bob')
      await page.getByText('back at the host').waitFor()
    }
    return { failed: `ended without a word: ${errors.slice(-500)}` }
  } catch (error) {
    return { failed: `${String(error)} ${errors.slice(-500)}` }
  } finally {
    await context.close()
    child.kill()
  }
}
