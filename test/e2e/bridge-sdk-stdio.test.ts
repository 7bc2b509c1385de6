/** Bridges between hosts and servers on pipes. */
import { STDIO_ROWS } from '../support/bridged/rows.ts'
import { bridgeSuite } from './bridge-suite.ts'

bridgeSuite(STDIO_ROWS)
