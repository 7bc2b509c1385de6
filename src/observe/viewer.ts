import { SHARED_PRINCIPAL } from '../rpc/call.ts'

/** The caller that views captured calls: an operator sees all of them, every other caller its own. */
export interface Viewer {
  readonly principal: string
  readonly isOperator: boolean
}

/** The viewer of the command line, and of operators' tokens. */
export const OPERATOR: Viewer = { principal: SHARED_PRINCIPAL, isOperator: true }

/** Whether the viewer may see what belongs to this principal. */
export const maySee = ({ isOperator, principal }: Viewer, owner: string): boolean => isOperator || principal === owner
