/** Bridges between hosts and servers over HTTP. */
import { HTTP_ROWS } from '../support/bridged/rows.ts'
import { bridgeSuite } from './bridge-suite.ts'

bridgeSuite(HTTP_ROWS)
