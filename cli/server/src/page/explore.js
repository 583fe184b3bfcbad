// Makes a view of files: a search field, a list, and the chosen entry.

import {button, byId, el, fill} from '/web/dom.js'

/** The pause between the last key and the search. */
const PAUSE_MS = 150

/**
 * Makes a search field whose keys lead on to a list. `ask` is called with the typed text a moment after the last key;
 * `step` and `back` move the focus into the list.
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

/** Returns the keys of a view with such a field and a list. */
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
 * Makes the parts of a view: `view` is the id of its element, `search` is called with the typed text a moment after the
 * last key, and `failed` with the error of an action.
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

  /** Moves the focus in the list by so many rows. */
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

    /** Puts the parts into the view, once; `more` is placed beside the field. */
    begin(...more) {
      if (place.firstChild) return
      fill(place, el('div', {class: 'bar', role: 'search'}, field, more), el('div', {class: 'columns'}, el('div', {class: 'column'}, stands, list), detail))
    },

    /** Makes a row, which a click or the keys choose. */
    row(focus, chosen, act, ...children) {
      return el('div', {role: 'option', class: 'row', tabindex: chosen ? '0' : '-1', 'aria-selected': String(chosen), 'data-focus': focus, onclick: () => act().catch(failed)}, children)
    },

    /** Makes a link in the text about the chosen entry. */
    link(focus, act, words) {
      const link = button('', () => act().catch(failed), {class: 'link', 'data-focus': focus})
      link.append(words)
      return link
    },

    /** Makes the button that leads back to the list, for windows without room for both. */
    toList: () => button('‹ List', back, {class: 'quiet back', 'data-focus': 'back'}),

    /** Moves the focus to the chosen entry. */
    read() {
      document.body.classList.add('reading')
      detail.focus({preventScroll: true})
    },

    /** Moves the focus to the first row of the list. */
    first: () => rows()[0]?.focus({preventScroll: true}),

    /** The keys of this view. */
    keys: {...listKeys(field, step, back), Enter: () => document.activeElement?.closest('[role=option]')?.click()},
  }
}
