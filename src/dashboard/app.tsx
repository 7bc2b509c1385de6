/** The frame of all screens: navigation, sign-in, help, notices. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { asError } from '../values/as-error.ts'
import { session, sessionProblem, signInWith, signOut } from './page/api.ts'
import { lineOf } from './model/text.ts'
import { commandOf } from './page/command.ts'
import { followCalls } from './page/feed.ts'
import { allKeys, GLOBAL_KEYS, isHelpOpen, keysVersion, SCREENS, useKeys } from './page/keys.ts'
import { notice } from './page/notices.ts'
import { route } from './page/route.ts'
import { setTheme, theme } from './page/theme.ts'
import { Command, Dialog, Empty, Heading } from './parts/basics.tsx'
import { Icon, Mark } from './parts/icons.tsx'
import type { IconName } from './parts/icons.tsx'
import { Call } from './screens/call.tsx'
import { Changes } from './screens/changes.tsx'
import { Health } from './screens/health.tsx'
import { Toolsets } from './screens/toolsets.tsx'
import { Catalog } from './screens/catalog.tsx'
import { Server } from './screens/server.tsx'
import { Servers } from './screens/servers.tsx'
import { Tool } from './screens/tool.tsx'
import { Traffic } from './screens/traffic.tsx'

const ServerScreen = (): JSX.Element => (route.value.item === '' ? <Servers /> : <Server />)

/** By the first segment of the path; `of`: the place in the navigation that is marked. */
const VIEWS: Readonly<
  Record<string, { readonly show: () => JSX.Element; readonly title: string; readonly of: string; readonly isForAll?: true }>
> = {
  traffic: { show: Traffic, title: 'Traffic', of: '/traffic', isForAll: true },
  catalog: { show: Catalog, title: 'Catalog', of: '/catalog' },
  tools: { show: Tool, title: 'Tool', of: '/catalog' },
  servers: { show: ServerScreen, title: 'Servers', of: '/servers' },
  toolsets: { show: Toolsets, title: 'Toolsets', of: '/toolsets' },
  changes: { show: Changes, title: 'Changes', of: '/changes' },
  health: { show: Health, title: 'Health', of: '/health' },
  calls: { show: Call, title: 'Call', of: '/traffic', isForAll: true },
}

export const App = (): JSX.Element => {
  const isIn = session.value !== undefined
  useEffect(() => {
    if (!isIn) return undefined
    const over = new AbortController()
    void followCalls(over.signal)
    return () => over.abort()
  }, [isIn])
  return isIn ? <Frame /> : <SignedOut />
}

/** Shown while the session is being opened. */
export const Shell = (): JSX.Element => (
  <div class="frame" aria-busy="true">
    <header class="side">
      <span class="brand">
        <Mark /> <span>Trunkline</span>
      </span>
    </header>
    <main class="main" />
  </div>
)

const Frame = (): JSX.Element => {
  const { screen, item } = route.value
  const view = VIEWS[screen]
  const isOperator = session.value?.role === 'operator'
  useKeys([...GLOBAL_KEYS, { key: 't', does: 'light, dark, or system theme', run: nextTheme }])
  useEffect(() => {
    document.title = `${[lineOf(item, 80), view?.title].filter(Boolean).join(' · ') || 'Not found'} · Trunkline`
  }, [view, item])
  const Shown = view?.show
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Navigation current={view?.of ?? ''} />
      <main id="main" tabIndex={0} class="main">
        {session.value?.faults === true && (
          <p class="faults">
            Faults are injected (<code>--allow-faults</code>): calls may fail, be delayed or be cut off.
            {isOperator && (
              <>
                {' '}
                <a href="/health">Show the faults</a>
              </>
            )}
          </p>
        )}
        {Shown === undefined ? (
          <div class="screen">
            <Heading title="Not found" />
            <Empty title="This screen does not exist">
              <a class="button" href="/traffic">
                Show the traffic
              </a>
            </Empty>
          </div>
        ) : isOperator || view?.isForAll === true ? (
          <Shown key={`${screen}/${item}`} />
        ) : (
          <div class="screen">
            <Heading title={view?.title ?? ''} />
            <Empty title="This screen is for operators">
              <p>
                You see your own calls. An operator has a token with <code>operator: true</code>, or with the scope that{' '}
                <code>admin.operator_scope</code> names.
              </p>
              <a class="button" href="/traffic">
                Show your calls
              </a>
            </Empty>
          </div>
        )}
      </main>
      {isHelpOpen.value && <Help />}
      <Notice />
    </div>
  )
}

const nextTheme = (): void => setTheme(({ system: 'light', light: 'dark', dark: 'system' } as const)[theme.peek()])

const Navigation = ({ current }: { readonly current: string }): JSX.Element => {
  const list = useRef<HTMLUListElement>(null)
  // On a narrow screen the list is scrolled.
  useEffect(
    () => list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    [current],
  )
  const { role, principal, version, write } = session.value ?? { role: 'user', principal: '', version: '', write: false }
  return (
    <header class="side">
      <a class="brand" href="/traffic">
        <Mark /> <span>Trunkline</span>
      </a>
      <nav aria-label="Screens">
        <ul ref={list}>
          {SCREENS.filter(({ path }) => role === 'operator' || path === '/traffic').map(({ path, name, key }) => (
            <li key={path}>
              <a href={path} aria-current={path === current ? 'page' : undefined} title={`g ${key}`}>
                {/* Cast: each screen has an icon of its name. */}
                <Icon name={path.slice(1) as IconName} /> <span>{name}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="side-foot">
        <button type="button" class="side-button" onClick={nextTheme} title="t">
          <Icon name={theme.value} />{' '}
          <span class="side-text">{{ system: 'As the system', light: 'Light', dark: 'Dark' }[theme.value]}</span>
        </button>
        <button type="button" class="side-button" onClick={() => (isHelpOpen.value = true)} title="?">
          <Icon name="keys" /> <span class="side-text">Keyboard</span>
        </button>
        <button type="button" class="side-button" onClick={() => void signOut()}>
          <Icon name="leave" /> <span class="side-text">Sign out</span>
        </button>
        <p class="side-facts">
          {version} · {role === 'operator' ? (write ? 'operator' : 'operator, read-only') : principal}
        </p>
      </div>
    </header>
  )
}

const Help = (): JSX.Element => {
  void keysVersion.value
  return (
    <Dialog title="Keyboard" onClose={() => (isHelpOpen.value = false)}>
      <dl class="help">
        {allKeys().map(({ key, does }) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((one) => (
                <kbd key={one}>{one === '' ? 'Space' : one}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

const Notice = (): JSX.Element => (
  <div class="notices" role="status" aria-live="polite">
    {notice.value !== undefined && <p class={notice.value.isTrouble ? 'notice notice-trouble' : 'notice'}>{notice.value.text}</p>}
  </div>
)

/** Shown without a sign-in. */
const SignedOut = (): JSX.Element => {
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState('')
  useEffect(() => {
    document.title = 'Sign in · Trunkline'
  }, [])
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      await signInWith(token.trim())
    } catch (error) {
      setProblem(asError(error).message)
    }
  }
  return (
    <main class="entrance">
      <div class="entrance-box">
        <Mark />
        <h1>Trunkline</h1>
        {(problem || sessionProblem.value) && (
          <p class="banner banner-notice" role="alert">
            {problem || sessionProblem.value}
          </p>
        )}
        <p>On this machine, this command opens the dashboard by a link that can be used once:</p>
        <Command text={commandOf('open')} />
        <form onSubmit={(event) => void enter(event)}>
          <label class="field">
            <span class="field-label">Or sign in with the token of your host or of an operator</span>
            <input
              type="password"
              autocomplete="off"
              spellcheck={false}
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="button button-accent" disabled={token.trim() === ''}>
            Sign in
          </button>
        </form>
      </div>
    </main>
  )
}
