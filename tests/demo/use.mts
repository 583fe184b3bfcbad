// Checks the generated declarations of a source with the TypeScript compiler. `bindings/node/check` compiles this file,
// and no program runs it.
import { Context, connect } from 'nudge-hints'
import type { DemoAddParams, Json, Session } from 'nudge-hints'

/** Both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_: Same<A, B>): void => {}

const store: Session = connect()
const params: DemoAddParams = { name: 'a', text: 'b', tags: ['c'], urgent: null }
const added: { readonly [name: string]: Json } = store.demo.add(params)
added['count']
store.demo.add({ name: 'a', text: 'b' })['note'].name
store.demo.list()
same<Parameters<typeof store.demo.get>, [params: { readonly name: string }]>(true)
// @ts-expect-error a text is missing
store.demo.add({ name: 'a' })
// @ts-expect-error a text is a string
store.demo.add({ name: 'a', text: 1 })
// @ts-expect-error an object
store.demo.get('a')
// @ts-expect-error no such verb
store.demo.nothing()
// This source has params of every kind.
store.kinds.import({ from: 'a', pace: 'fast', count: 1, share: 0.5, paces: ['slow'], by_name: { a: true, b: 'c' }, data: [1] })
store.kinds.import({ context: new Context({ cwd: '/work' }) })
store.kinds.import()
// @ts-expect-error one of two words
store.kinds.import({ pace: 'late' })
// @ts-expect-error no such source
store.nothing
