/** The search box of a screen. What is typed stands in the address (`q`). */
import type { JSX, RefObject } from 'preact'
import { setQuery } from '../page/route.ts'
import { Icon } from './icons.tsx'

export interface SearchBoxProps {
  readonly box: RefObject<HTMLInputElement | null>
  /** For those who do not see the icon. */
  readonly label: string
  readonly placeholder: string
  readonly value: string
  /** The key `/` leads here. */
  readonly hasKey?: boolean
  readonly spellcheck?: boolean
  /** The id of the element that says what is wrong with the text. */
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
      onInput={(event) => setQuery({ q: event.currentTarget.value })}
    />
    {hasKey === true && <kbd aria-hidden="true">/</kbd>}
  </label>
)
