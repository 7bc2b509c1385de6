/** Bridges from one transport to another. */
import { MIXED_ROWS } from '../support/bridged/rows.ts'
import { bridgeSuite } from './bridge-suite.ts'

bridgeSuite(MIXED_ROWS)
