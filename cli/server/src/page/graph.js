// Draws a small graph: edges that lead to an entry on the left, edges that lead from it on the right.

import {visible} from '/web/dom.js'

const SVG = 'http://www.w3.org/2000/svg'
const ROW = 30
const WIDTH = 760
const COLUMN = 200
/** The number of letters of a name that fit. */
const MOST = 24

function svg(name, attributes = {}, ...children) {
  const out = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (key.startsWith('on')) out.addEventListener(key.slice(2), value)
    else out.setAttribute(key, String(value))
  }
  out.append(...children.filter(Boolean))
  return out
}

function cut(name) {
  const shown = [...visible(name)]
  return shown.length > MOST ? `${shown.slice(0, MOST - 1).join('')}…` : shown.join('')
}

/** Makes a name in the graph; one with `act` is a link. */
function label(x, y, name, title, act) {
  const words = svg('text', {x: COLUMN / 2, y: 18, 'text-anchor': 'middle'})
  words.textContent = cut(name)
  const whole = svg('title')
  whole.textContent = visible(title)
  const onkeydown = event => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    event.stopPropagation()
    act()
  }
  const link = act ? {role: 'link', tabindex: '0', 'data-focus': `graph-${title}`, onclick: act, onkeydown} : {class: 'self'}
  return svg('g', {transform: `translate(${x} ${y})`, ...link}, whole, svg('rect', {width: COLUMN, height: ROW - 4, rx: 6}), words)
}

const line = (x1, y1, x2, y2) => svg('path', {d: `M${x1} ${y1} C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`})

/**
 * Draws the edges to and from an entry. `of` returns for each edge its name, its tooltip, and the id that it chooses,
 * if any. Several edges between the same two entries are drawn as one.
 */
export function linkGraph(name, before, after, {of, choose}) {
  const once = edges => [...new Map(edges.map(of).map(edge => [edge.id ?? edge.name, edge])).values()]
  const [left, right] = [once(before), once(after)]
  const height = Math.max(left.length, right.length, 1) * ROW
  const middle = height / 2
  const top = (at, count) => (height - count * ROW) / 2 + at * ROW
  const side = (edges, x) => edges.map((edge, at) => label(x, top(at, edges.length), edge.name, edge.title, edge.id && (() => choose(edge.id))))
  const lines = [
    ...left.map((_, at) => line(COLUMN, top(at, left.length) + ROW / 2 - 2, (WIDTH - COLUMN) / 2, middle - 2)),
    ...right.map((_, at) => line((WIDTH + COLUMN) / 2, middle - 2, WIDTH - COLUMN, top(at, right.length) + ROW / 2 - 2)),
  ]
  // The middle is drawn over the lines, between the two sides.
  const attributes = {viewBox: `0 0 ${WIDTH} ${height}`, class: 'graph', role: 'group', 'aria-label': `${left.length} before ${visible(name)}, ${right.length} after it`}
  return svg('svg', attributes, ...lines, ...side(left, 0), label((WIDTH - COLUMN) / 2, middle - ROW / 2, name, name), ...side(right, WIDTH - COLUMN))
}
