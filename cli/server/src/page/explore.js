// A view of files: a field to search, a list, and what is chosen in it.

import {button, byId, el, fill} from '/web/dom.js'

/** How long after the last key a search begins. */
const PAUSE_MS = 150

/**
 * A field to search, whose keys lead on to a list: `ask` is called with what is typed, a moment after the last key, `step`
 * and `back` lead into the list.
 */
export function searchField(find, {ask, step, back}) {
  let typed = 0
  const inSearch = event => {
    if (event.key === 'Escape') {
      clearTimeout(typed)
      field.value = ''
      ask('')
      back()
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      step(0)
    } else {
      return
    }
    event.preventDefault()
    event.stopPropagation()
  }
  const later = () => {
    clearTimeout(typed)
    typed = setTimeout(() => ask(field.value), PAUSE_MS)
  }
  const field = el('input', {
    type: 'search', name: 'query', placeholder: find, 'aria-label': find, autocomplete: 'off', spellcheck: 'false', maxlength: '1000',
    'aria-keyshortcuts': '/', oninput: later, onkeydown: inSearch,
  })
  return field
}

/** What keys do in a view with such a field and a list. */
export const listKeys = (field, step, back) => ({
  '/': () => { field.focus(); field.select() },
  j: () => step(1),
  ArrowDown: () => step(1),
  k: () => step(-1),
  ArrowUp: () => step(-1),
  Home: () => step(-Infinity),
  End: () => step(Infinity),
  Escape: back,
})

/**
 * Makes the parts of a view: `view` is where it stands, `search` is called with what is typed, a moment after the last
 * key, and `failed` with what an action throws.
 */
export function explorer({view, find, listName, chosenName, search, failed}) {
  const place = byId(view)
  const field = searchField(find, {ask: query => search(query).catch(failed), step, back})
  const stands = el('div', {class: 'stands', role: 'status'})
  const list = el('div', {class: 'explored', role: 'listbox', 'aria-label': listName, tabindex: '-1'})
  const detail = el('article', {class: 'node', tabindex: '-1', 'aria-label': chosenName})
  const rows = () => [...list.querySelectorAll('[role=option]')]

  function back() {
    document.body.classList.remove('reading')
    list.focus({preventScroll: true})
  }

  /** Goes on in the list by the keys. */
  function step(by) {
    const all = rows()
    if (!all.length) return
    const at = all.indexOf(document.activeElement)
    const next = at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by))
    all[next].focus()
    all[next].scrollIntoView({block: 'nearest'})
  }

  return {
    stands, list, detail,

    /** Puts the parts into the view, once; `more` stands beside the field. */
    begin(...more) {
      if (place.firstChild) return
      fill(place, el('div', {class: 'bar', role: 'search'}, field, more), el('div', {class: 'columns'}, el('div', {class: 'column'}, stands, list), detail))
    },

    /** A row, which is chosen by a click or by the keys. */
    row(focus, chosen, act, ...children) {
      return el('div', {role: 'option', class: 'row', tabindex: chosen ? '0' : '-1', 'aria-selected': String(chosen), 'data-focus': focus, onclick: () => act().catch(failed)}, children)
    },

    /** A link among what is told of the chosen one. */
    link(focus, act, words) {
      const link = button('', () => act().catch(failed), {class: 'link', 'data-focus': focus})
      link.append(words)
      return link
    },

    /** Leads back to the list, where it does not stand beside. */
    toList: () => button('‹ List', back, {class: 'quiet back', 'data-focus': 'back'}),

    /** Goes on to what is chosen. */
    read() {
      document.body.classList.add('reading')
      detail.focus({preventScroll: true})
    },

    /** Goes to the first of the list. */
    first: () => rows()[0]?.focus({preventScroll: true}),

    /** What keys do in this view. */
    keys: {...listKeys(field, step, back), Enter: () => document.activeElement?.closest('[role=option]')?.click()},
  }
}
