/** On whose behalf something is looked at: an operator sees everything, every other caller what is its own. */
export interface Viewer {
  readonly principal: string
  readonly isOperator: boolean
}

/** Whether the viewer may see what belongs to this principal. */
export const maySee = ({ isOperator, principal }: Viewer, owner: string): boolean => isOperator || principal === owner
