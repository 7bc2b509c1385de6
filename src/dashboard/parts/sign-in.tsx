/** Signs the operator in to a server: requests the link, shows it, and waits for completion. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { asError } from '../../values/as-error.ts'
import { ask, session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { attempting, notify } from '../page/notices.ts'
import { Button, Command } from './basics.tsx'

interface Asked {
  readonly login: { readonly url: string; readonly code?: string } | undefined
}

export const SignIn = ({ server, onDone }: { readonly server: string; readonly onDone?: () => void }): JSX.Element => {
  const [asked, setAsked] = useState<Asked['login']>(undefined)
  const at = `/login?server=${encodeURIComponent(server)}`
  useEffect(() => {
    if (asked === undefined) return undefined
    const over = new AbortController()
    ask<{ readonly end: string }>('GET', at, undefined, over.signal).then(
      ({ end }) => {
        setAsked(undefined)
        notify(end === 'done' ? `Signed in at ${server}` : `The sign-in at ${server} ended: ${end}`, end !== 'done')
        onDone?.()
      },
      (error: unknown) => {
        if (over.signal.aborted) return
        // It may have ended meanwhile: the state of the server tells, and another one can be begun.
        setAsked(undefined)
        notify(asError(error).message, true)
      },
    )
    return () => over.abort()
  }, [asked])
  if (session.value?.write !== true) return <Command text={commandOf('login', server)} />
  const start = (): Promise<void> =>
    attempting(async () => {
      const { login } = await ask<Asked>('POST', at, '{}')
      if (login === undefined) notify(`${server} has no sign-in`, true)
      setAsked(login)
    })
  return asked === undefined ? (
    <Button tone="accent" onClick={() => void start()}>
      Sign in
    </Button>
  ) : (
    <span class="sign-in">
      <a class="button button-accent" href={safeUrl(asked.url)} target="_blank" rel="noopener noreferrer">
        Open the sign-in page
      </a>
      {asked.code !== undefined && (
        <span>
          code <strong class="num">{asked.code}</strong>
        </span>
      )}
      <span class="muted" role="status">
        Waiting for the end of it …
      </span>
    </span>
  )
}

/** Only http and https URLs become links, as the text comes from a server. */
export const safeUrl = (url: string): string => (/^https?:\/\//i.test(url) ? url : '#')
