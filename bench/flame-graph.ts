/** Draws folded stacks as a flame graph: one SVG without scripts. Every frame shows its name and share as a tooltip. */

interface Frame {
  readonly name: string
  own: number
  total: number
  readonly above: Map<string, Frame>
}

const WIDTH = 1_600
const ROW = 17
const NARROWEST = 0.4
const LETTER = 6.6

const frame = (name: string): Frame => ({ name, own: 0, total: 0, above: new Map() })

const grow = (stacks: ReadonlyMap<string, number>): Frame => {
  const root = frame('all')
  for (const [stack, time] of stacks) {
    let at = root
    at.total += time
    for (const name of stack.split(';')) {
      const next = at.above.get(name) ?? frame(name)
      at.above.set(name, next)
      next.total += time
      at = next
    }
    at.own += time
  }
  return root
}

const depth = ({ above }: Frame): number => 1 + Math.max(0, ...[...above.values()].map(depth))

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Ours warm, Node's blue, the rest grey. */
const colour = (name: string): string => {
  if (/ \w[\w-]*(\/[\w-]+)*\.[tj]s:\d+$/.test(name)) return '#f3a24f'
  return name.includes(' node:') ? '#8fb8de' : '#c9c9c9'
}

/** `title` stands above it. */
export const flameGraph = (stacks: ReadonlyMap<string, number>, title: string): string => {
  const root = grow(stacks)
  const height = (depth(root) + 2) * ROW
  const boxes: string[] = []
  const draw = (one: Frame, left: number, level: number) => {
    const width = (one.total / root.total) * WIDTH
    if (width < NARROWEST) return
    const top = height - (level + 1) * ROW
    const letters = Math.floor((width - 4) / LETTER)
    const words =
      letters < 3 ? '' : `<text x="${(left + 2).toFixed(1)}" y="${top + 12}">${escape(one.name.slice(0, letters))}</text>`
    const share = `${((100 * one.total) / root.total).toFixed(1)} %, itself ${((100 * one.own) / root.total).toFixed(1)} %`
    boxes.push(
      `<g><title>${escape(one.name)}: ${share}</title><rect x="${left.toFixed(1)}" y="${top}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${colour(one.name)}"/>${words}</g>`,
    )
    let next = left
    for (const child of [...one.above.values()].sort((a, b) => b.total - a.total)) {
      draw(child, next, level + 1)
      next += (child.total / root.total) * WIDTH
    }
  }
  draw(root, 0, 0)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">
<style>rect{stroke:#fff;stroke-width:.5}g:hover rect{fill:#e4572e}text{pointer-events:none}</style>
<text x="4" y="13">${escape(title)}</text>
${boxes.join('\n')}
</svg>
`
}
