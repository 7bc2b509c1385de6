/** The caller who views calls: an operator sees all, any other caller only its own. */
export interface Viewer {
  readonly principal: string
  readonly isOperator: boolean
}

/** Whether the viewer may see the calls of a principal. */
export const maySee = ({ isOperator, principal }: Viewer, owner: string): boolean => isOperator || principal === owner
