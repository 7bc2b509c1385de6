/** Where the browser comes back to its host: a listener on a loopback address, on a port that the system chooses. */
import { createServer } from 'node:http'
import { listening } from '../../../support/listening.ts'

export interface Callback extends AsyncDisposable {
  readonly redirect: string
  /** Resolves with the URL that the browser came back to. */
  readonly returned: Promise<URL>
}

export const awaitCode = async (): Promise<Callback> => {
  const returned = Promise.withResolvers<URL>()
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (url.pathname === '/callback') returned.resolve(url)
    response.end('back at the host')
  })
  const opened = await listening(server)
  return { ...opened, redirect: `${opened.url}/callback`, returned: returned.promise }
}
