/** The start of the page. */
import { render } from 'preact'
import { App } from './app.tsx'
import { startSession } from './page/api.ts'
import { startKeys } from './page/keys.ts'
import { startRouting } from './page/route.ts'
import { show } from './page/theme.ts'

show()
startRouting()
startKeys()
const root = document.getElementById('app')
void startSession().then(() => root !== null && render(<App />, root))
