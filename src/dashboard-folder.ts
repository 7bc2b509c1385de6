/** The folder of the built dashboard: in `dist`, beside the program or, when that runs from its sources, in the checkout. */
import { fileURLToPath } from 'node:url'

export const DASHBOARD_FOLDER = fileURLToPath(new URL('../dist/dashboard', import.meta.url))
