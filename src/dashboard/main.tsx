/** Entry point of the page. */
import { render } from 'preact'
import { App, Shell } from './app.tsx'
import { startSession } from './page/api.ts'
import { markHiddenTexts } from './page/hidden-text.ts'
import { startKeys } from './page/keys.ts'
import { startRouting } from './page/route.ts'
import { show } from './page/theme.ts'

markHiddenTexts()
show()
startRouting()
startKeys()
const root = document.getElementById('app')
// Renders the frame before the first answer.
if (root !== null) render(<Shell />, root)
void startSession().then(() => root !== null && render(<App />, root))
