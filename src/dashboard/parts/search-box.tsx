/** The search box of a screen. The entered text is in the address (`q`). */
import type { JSX, RefObject } from 'preact'
import { setQuery } from '../page/route.ts'
import { Icon } from './icons.tsx'

export interface SearchBoxProps {
  readonly box: RefObject<HTMLInputElement | null>
  /** Label for screen readers. */
  readonly label: string
  readonly placeholder: string
  readonly value: string
  /** The key `/` moves the focus here. */
  readonly hasKey?: boolean
  readonly spellcheck?: boolean
  /** The id of the element with the error of the text. */
  readonly problemId?: string
  readonly isWrong?: boolean
}

export const SearchBox = ({
  box,
  label,
  placeholder,
  value,
  hasKey,
  spellcheck,
  problemId,
  isWrong,
}: SearchBoxProps): JSX.Element => (
  <label class="filter">
    <Icon name="search" />
    <span class="sr-only">{label}</span>
    <input
      ref={box}
      type="search"
      value={value}
      placeholder={placeholder}
      {...(spellcheck !== undefined && { spellcheck })}
      {...(problemId !== undefined && { autocomplete: 'off', 'aria-invalid': isWrong === true, 'aria-describedby': problemId })}
      // The first letter is a step of the history, the others are not.
      onInput={(event) => setQuery({ q: event.currentTarget.value }, { replace: value !== '' })}
    />
    {hasKey === true && <kbd aria-hidden="true">/</kbd>}
  </label>
)
