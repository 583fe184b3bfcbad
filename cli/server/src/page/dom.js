// Makes elements and texts. Every stored text goes through `text` or `visible`, so it only ever becomes text.

import {ago, exactly} from '/web/words.js'

/**
 * The characters that a browser does not show, or that reverse the order of others; the same as in
 * nudge/core/src/text.rs.
 */
const HIDDEN = new RegExp(
  '[\\p{Cc}\\u00ad\\u034f\\u061c\\u115f-\\u1160\\u17b4-\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e' +
    '\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}' +
    '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]',
  'gu',
)

const present = children => children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false)

/**
 * Makes an element: `el('p', {class: 'x', onclick: f}, 'text', child)`. Attributes that are null or false are left out.
 */
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

/** Returns true if a text has invisible characters. */
export const hasHidden = text => text.search(HIDDEN) >= 0

/** Writes invisible characters of a text visibly; with `lines`, line breaks and tabs stay. */
export function visible(text, lines = false) {
  return String(text).replace(HIDDEN, c =>
    lines && (c === '\n' || c === '\t') ? c : `\\u{${c.codePointAt(0).toString(16)}}`,
  )
}

/** Shows a stored text in its own element, so that its writing direction ends with it. */
export function text(stored, attributes = {}) {
  return el('span', {dir: 'auto', ...attributes, class: `stored ${attributes.class ?? ''}`.trim()}, visible(stored))
}

/** Shows one line of a stored text, cut. */
export function line(stored, most = 160) {
  const begin = String(stored).slice(0, most * 4)
  const shown = [...visible(begin.split('\n').map(part => part.trimEnd()).join(' ⏎ '))]
  const cut = shown.length > most || begin.length < stored.length
  return el('span', {dir: 'auto', class: 'stored'}, shown.slice(0, most).join('') + (cut ? '…' : ''))
}

/** Shows a stored text unchanged, with all its lines. */
export function block(stored, attributes = {}) {
  return el('pre', {dir: 'auto', tabindex: '0', ...attributes}, visible(stored, true))
}

/** Shows a command for a terminal. */
export const code = words => el('code', {}, words)

/** Shows how long ago a time was, and keeps that up to date. */
export const since = at => el('time', {datetime: at, title: exactly(at), 'data-ago': ''}, ago(at))

setInterval(() => {
  for (const time of document.querySelectorAll('time[data-ago]')) time.textContent = ago(time.dateTime)
}, 20_000)

/** Replaces the content of an element. The focus returns to the element with the same `data-focus`, if there is one. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined
  element.replaceChildren(...present(children))
  if (focused !== undefined) {
    const again = [...element.querySelectorAll('[data-focus]')].find(one => one.dataset.focus === focused)
    ;(again ?? element).focus({preventScroll: true})
  }
  return element
}

/** Makes a button. */
export const button = (words, onclick, attributes = {}) => el('button', {type: 'button', onclick, ...attributes}, words)

/** Makes a control with its label and a note about the expected input. */
export function field(label, control, note) {
  const id = `note-${control.name}`
  if (note) control.setAttribute('aria-describedby', id)
  return el('div', {class: 'field'}, el('label', {}, el('span', {}, label), control), note && el('small', {id}, note))
}

let toastAction = null

/** Shows that an action is done, with a button that undoes it if possible. */
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

/** Undoes the action of the last message. */
export function undoLast() {
  const action = toastAction
  toastAction = null
  if (action) action()
}
