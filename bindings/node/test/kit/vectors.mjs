// Implements the vectors of `tests/README.md`: builders, matching, and the check of one answer.
import assert from 'node:assert/strict'

const TOLERANCE = 1e-4 + Number.EPSILON

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the operator or builder that a value stands for, with its argument. */
function operator(value) {
  const names = isObject(value) ? Object.keys(value) : []
  return names.length === 1 && names[0].startsWith('$') ? [names[0], value[names[0]]] : undefined
}

/** Replaces builders with their values. */
export function resolve(value, saved) {
  const found = operator(value)
  if (found) return build(found[0], resolve(found[1], saved), saved)
  if (Array.isArray(value)) return value.map((item) => resolve(item, saved))
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item, saved)]))
  return value
}

const counted = (n, make) => Array.from({ length: n }, (_, at) => make(at + 1))

function build(name, argument, saved) {
  switch (name) {
    case '$join':
      return argument.join('')
    case '$repeat':
      return argument[0].repeat(argument[1])
    case '$list':
      return counted(argument[1], (at) => `${argument[0]}${at}`)
    case '$map':
      return Object.fromEntries(counted(argument[1], (at) => [`${argument[0]}${at}`, argument[2]]))
    case '$nest':
      return counted(argument - 1, () => 0).reduce((inner) => [inner], [])
    case '$ref':
      assert(saved.has(argument), `nothing saved as ${argument}`)
      return structuredClone(saved.get(argument))
    default:
      return { [name]: argument }
  }
}

/** Returns the reason why `actual` does not match, or undefined if it matches. A missing value is undefined. */
export function mismatch(expected, actual, at = '', exact = false) {
  const found = operator(expected)
  if (found) return mismatchOperator(found, actual, at, exact)
  const differs = `${at || '(whole answer)'}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return differs
    return first(expected.map((want, i) => mismatch(want, actual[i], `${at}/${i}`, exact)))
  }
  if (isObject(expected)) {
    if (!isObject(actual)) return differs
    const extra = exact && Object.keys(actual).find((name) => !Object.hasOwn(expected, name))
    if (extra) return `${at}/${extra}: must not be there`
    const own = (name) => (Object.hasOwn(actual, name) ? actual[name] : undefined)
    return first(Object.entries(expected).map(([name, want]) => mismatch(want, own(name), `${at}/${name}`, exact)))
  }
  const near = typeof expected === 'number' && typeof actual === 'number' && Math.abs(expected - actual) <= TOLERANCE
  return near || expected === actual ? undefined : differs
}

const first = (found) => found.find((one) => one !== undefined)

function mismatchOperator([name, argument], actual, at, exact) {
  const verdict = () => {
    switch (name) {
      case '$absent':
        return actual === undefined
      case '$any':
        return actual !== undefined
      case '$len':
        return Array.isArray(actual) && actual.length === argument
      case '$contains':
        return typeof actual === 'string' && actual.includes(argument)
      case '$has':
        return Array.isArray(actual) && argument.every((want) => actual.some((item) => mismatch(want, item, at, exact) === undefined))
      default:
        throw new Error(`no such operator: ${name}`)
    }
  }
  if (name === '$exact') return mismatch(argument, actual, at, true)
  return verdict() ? undefined : `${at}: expected ${name} ${JSON.stringify(argument)}, got ${JSON.stringify(actual)}`
}

/** Returns the value at a JSON pointer. */
function part(value, pointer) {
  const names = pointer.split('/').slice(1)
  return names.reduce((here, name) => here?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], value)
}

const expect = (wanted, actual) => assert.equal(mismatch(wanted, actual), undefined)

/** Checks an answer: `{result, text}`, or `{error, text}` with an error object. */
export function judge(step, answer, saved, codes) {
  for (const [wanted, parts] of [[true, step.text_has ?? []], [false, step.text_lacks ?? []]]) {
    for (const piece of resolve(parts, saved)) {
      assert.equal(answer.text.includes(piece), wanted, `the answer's text and ${piece}`)
    }
  }
  if (step.error !== undefined) return judgeError(resolve(step.error, saved), answer, codes)
  assert.equal(answer.error, undefined)
  if (step.expect !== undefined) expect(resolve(step.expect, saved), answer.result)
  for (const [pointer, name] of Object.entries(step.same_text ?? {})) {
    assert.equal(JSON.stringify(part(answer.result, pointer)), JSON.stringify(saved.get(name)))
  }
  for (const [name, pointer] of Object.entries(step.save ?? {})) {
    const kept = part(answer.result, pointer)
    assert.notEqual(kept, undefined, `nothing at ${pointer}`)
    saved.set(name, structuredClone(kept))
  }
}

function judgeError(wanted, { error, result }, codes) {
  assert(error, `not refused: ${JSON.stringify(result)}`)
  assert.match(error.message, /^[^\n]+$/)
  if (typeof wanted === 'string') {
    assert(codes[wanted] > 0, `no such error: ${wanted}`)
    expect({ code: codes[wanted], data: { reason: wanted } }, error)
    return
  }
  const { message_contains: words = '', ...others } = wanted
  assert(error.message.includes(words), `${error.message} lacks ${words}`)
  expect(others, error)
}
