// The search of the documentation site; the index is loaded with the first key.
import MiniSearch from './minisearch.js'

const input = document.querySelector('#search')
const results = document.querySelector('#results')
const root = input.dataset.root
let index

const load = async () => {
  const text = await (await fetch(new URL('search.json', import.meta.url))).text()
  return MiniSearch.loadJSON(text, { fields: ['heading', 'text'], storeFields: ['heading', 'title', 'href'] })
}

const show = async () => {
  index ??= load()
  const words = input.value.trim()
  const found = words === '' ? [] : (await index).search(words, { prefix: true, fuzzy: 0.15, boost: { heading: 3 } }).slice(0, 12)
  results.replaceChildren(
    ...found.map(({ heading, title, href }) => {
      const link = document.createElement('a')
      link.href = root + href
      link.textContent = heading === title ? title : `${title} › ${heading.replaceAll('`', '')}`
      const item = document.createElement('li')
      item.append(link)
      return item
    }),
  )
  results.hidden = found.length === 0
}

input.addEventListener('input', () => void show())
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault()
    input.focus()
  } else if (event.key === 'Escape') {
    input.value = ''
    void show()
  }
})
