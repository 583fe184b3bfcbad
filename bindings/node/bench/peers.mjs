// Does the same as Nudge in plain JavaScript: it compares scopes, computes scores and gives reasons.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

const HOUR_MS = 3_600_000

/** A store with scopes in plain JavaScript. `matcher` makes a predicate from a glob. */
export class PureStore {
  #components = new Map()
  #matcher

  constructor(matcher) {
    this.#matcher = matcher
  }

  set(component, key, value, { cwd_glob, branch, os, priority = 5, confidence = 0.5 }) {
    let keys = this.#components.get(component)
    if (keys === undefined) this.#components.set(component, (keys = new Map()))
    let variants = keys.get(key)
    if (variants === undefined) keys.set(key, (variants = []))
    const specificity = [cwd_glob, branch, os].filter((field) => field !== undefined).length
    const compiled = { cwd: cwd_glob && this.#matcher(cwd_glob), branch: branch && this.#matcher(branch), os }
    variants.push({ value, cwd_glob, ...compiled, priority, confidence, specificity, useCount: 0, usedAt: 0, updatedAt: Date.now() })
  }

  get(component, key, context) {
    const variants = this.#components.get(component)?.get(key)
    if (variants === undefined) return null
    const now = Date.now()
    let best = null
    let bestScore = 0
    for (const hint of variants) {
      if (hint.os !== undefined && hint.os !== context.os) continue
      if (hint.branch !== undefined && !hint.branch(context.branch)) continue
      if (hint.cwd !== undefined && !hint.cwd(context.cwd)) continue
      const score = scoreOf(hint, now)
      if (best === null || hint.specificity > best.specificity || (hint.specificity === best.specificity && score > bestScore)) {
        best = hint
        bestScore = score
      }
    }
    return best === null ? null : new Found(best, bestScore, context)
  }
}

function scoreOf({ useCount, usedAt, priority, confidence, specificity, updatedAt }, now) {
  const uses = useCount === 0 ? 0 : useCount * 2 ** (-(now - usedAt) / (12 * HOUR_MS))
  const recency = 2 ** (-(now - updatedAt) / (24 * HOUR_MS))
  return 0.3 * (1 - 2 ** (-uses / 4)) + (0.2 * priority) / 10 + 0.2 * confidence + (0.2 * specificity) / 6 + 0.1 * recency
}

/** A found hint. It makes its reasons only on request. */
class Found {
  constructor(hint, score, context) {
    this.value = hint.value
    this.score = score
    this.hint = hint
    this.context = context
  }

  get reasons() {
    const { hint, context } = this
    const out = []
    if (hint.cwd_glob !== undefined) out.push(`cwd matched ${hint.cwd_glob}`)
    if (hint.branch !== undefined) out.push(`branch=${context.branch} allowed`)
    if (hint.os !== undefined) out.push(`os=${hint.os} allowed`)
    return out
  }
}

/** Compiles each glob once, with the most used package for globs. */
export function compiled() {
  const picomatch = require('picomatch')
  return new PureStore((glob) => picomatch(glob))
}

/** Does not compile globs: passes them to the package at each call. */
export function uncompiled() {
  const micromatch = require('micromatch')
  return new PureStore((glob) => (text) => micromatch.isMatch(text, glob))
}
