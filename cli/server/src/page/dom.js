// Elements and texts. Whatever is stored goes through `text` or `visible`, and only ever becomes text.

import {ago, exactly} from '/web/words.js'

/**
 * The characters that a browser shows as nothing, or that turn the order of others around; the same as in
 * nudge/core/src/text.rs.
 */
const HIDDEN = new RegExp(
  '[\\p{Cc}\\u00ad\\u034f\\u061c\\u115f-\\u1160\\u17b4-\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e' +
    '\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}' +
    '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]',
  'gu',
)

const present = children => children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false)

/** Makes an element: `el('p', {class: 'x', onclick: f}, 'text', child)`. Attributes that are null or false are left out. */
export function el(name, attributes = {}, ...children) {
  const out = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (key.startsWith('on')) out.addEventListener(key.slice(2), value)
    else if (key in out && typeof value !== 'string') out[key] = value
    else out.setAttribute(key, value === true ? '' : String(value))
  }
  out.append(...present(children))
  return out
}

export const byId = id => document.getElementById(id)

/** Whether a text holds characters that would not be seen. */
export const hasHidden = text => text.search(HIDDEN) >= 0

/** A text in which hidden characters are written out; with `lines`, line breaks and tabs stay. */
export function visible(text, lines = false) {
  return String(text).replace(HIDDEN, c =>
    lines && (c === '\n' || c === '\t') ? c : `\\u{${c.codePointAt(0).toString(16)}}`,
  )
}

/** A stored text as an element of its own, so that its direction of writing ends with it. */
export function text(stored, attributes = {}) {
  return el('span', {dir: 'auto', ...attributes, class: `stored ${attributes.class ?? ''}`.trim()}, visible(stored))
}

/** One line of a stored text, cut. */
export function line(stored, most = 160) {
  const begin = String(stored).slice(0, most * 4)
  const shown = [...visible(begin.split('\n').map(part => part.trimEnd()).join(' ⏎ '))]
  const cut = shown.length > most || begin.length < stored.length
  return el('span', {dir: 'auto', class: 'stored'}, shown.slice(0, most).join('') + (cut ? '…' : ''))
}

/** A stored text as it is, on as many lines as it has. */
export function block(stored, attributes = {}) {
  return el('pre', {dir: 'auto', tabindex: '0', ...attributes}, visible(stored, true))
}

/** A word to type in a terminal. */
export const code = words => el('code', {}, words)

/** How long ago a time was; it goes on by itself. */
export const since = at => el('time', {datetime: at, title: exactly(at), 'data-ago': ''}, ago(at))

setInterval(() => {
  for (const time of document.querySelectorAll('time[data-ago]')) time.textContent = ago(time.dateTime)
}, 20_000)

/** Replaces what is in an element. Whoever had the focus there has it again, where the same `data-focus` is there. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined
  element.replaceChildren(...present(children))
  if (focused !== undefined) {
    const again = [...element.querySelectorAll('[data-focus]')].find(one => one.dataset.focus === focused)
    ;(again ?? element).focus({preventScroll: true})
  }
  return element
}

/** A button. */
export const button = (words, onclick, attributes = {}) => el('button', {type: 'button', onclick, ...attributes}, words)

/** A control with its label, and a note on what belongs there. */
export function field(label, control, note) {
  const id = `note-${control.name}`
  if (note) control.setAttribute('aria-describedby', id)
  return el('div', {class: 'field'}, el('label', {}, el('span', {}, label), control), note && el('small', {id}, note))
}

let toastAction = null

/** Says what was done, with a way back where there is one. */
export function toast(words, undo = null) {
  toastAction = undo
  const box = byId('toast')
  const hide = () => (box.hidden = true)
  fill(
    box,
    el('span', {}, words),
    undo && button('Undo', undoLast, {class: 'strong', 'aria-keyshortcuts': 'u'}),
    button('×', hide, {class: 'quiet', 'aria-label': 'Close this message'}),
  )
  box.hidden = false
}

/** Takes back what the last message was about. */
export function undoLast() {
  const action = toastAction
  toastAction = null
  if (action) action()
}
