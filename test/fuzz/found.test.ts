import {
  createEngine,
  createLog,
  createOperator,
  defineConfig,
  defineEvents,
  defineProjection,
  defineSubscription,
} from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createScriptedSource, createTemporaryStore, type ScriptedEvent } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkSchema } from '../../src/postgres/connection/identifier.ts'
import { createPlace } from '../cli/place.ts'
import { cloneDatabase, describeNewest } from '../postgres/databases.ts'
import { notes } from './doors/append.ts'
import { silent } from './doors/engine.ts'
import { hostileProxy } from './generate/value.ts'

// Everything that fuzzing has found, by its input.

describe('an append', () => {
  const getTime = (answer: unknown) => Object.assign(new Date(0), { getTime: () => answer })
  const deep = (depth: number) => `${'['.repeat(depth)}{"\\\\":0}${']'.repeat(depth)}`
  const throwing = {
    get a() {
      throw new Error('no')
    },
  }
  it.for([
    ['data that throws', [{ type: 'A', data: throwing }], 'EVENT_NOT_JSON'],
    ['a proxy that throws at everything, as data', [{ type: 'A', data: hostileProxy({}) }], 'EVENT_NOT_JSON'],
    ['one as an event', [hostileProxy({})], 'EVENT_FIELD_INVALID'],
    ['one as the list of events', hostileProxy([]), 'EVENT_FIELD_INVALID'],
    ['a constructor that throws', [{ type: 'A', data: Object.create(throwing) }], 'EVENT_NOT_JSON'],
    ['a time that is no Date', [{ type: 'A', data: 1, time: new Proxy(new Date(0), {}) }], 'EVENT_FIELD_INVALID'],
    ['a text that is too long with its escapes', [{ type: 'A', data: '\0'.repeat(2 ** 28) }], 'EVENT_TOO_LARGE'],
    ['a key like that', [{ type: 'A', data: { ['\0'.repeat(2 ** 28)]: 1 } }], 'EVENT_TOO_LARGE'],
    ['a backslash where no stack reaches', [{ type: 'A', json: deep(100_000) }], 'EVENT_TOO_DEEP'],
  ] as const)('refuses %s', async ([, events, code]) => {
    await using store = await createTemporaryStore()
    const log = createLog({ store })
    await expect(log.append('a', events as never)).rejects.toMatchObject({ code })
    expect(await store.log.end()).toBe(0)
  })

  it.for([Number.POSITIVE_INFINITY, 'x', 1n, {}])(
    'takes a date for what it is, and not for what it says: %s',
    async (answer) => {
      await using store = await createTemporaryStore()
      await createLog({ store }).append('a', [{ type: 'A', data: 1, time: getTime(answer) }])
      const { events } = await store.log.readAll(0, { events: 1, bytes: 1_000 })
      expect(events[0]?.time).toBe('1970-01-01T00:00:00.000Z')
    },
  )

  it('refuses an expected version that is not even a text', async () => {
    await using store = await createTemporaryStore()
    const options = { expectedVersion: Object.create(null) as never }
    const work = createLog({ store }).append('a', [{ type: 'A', data: 1 }], options)
    await expect(work).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('names', () => {
  const withColumn = (column: string) => () =>
    defineProjection('p', { events: notes, initial: () => ({}), on: {}, columns: { [column]: 'text' } })

  it.for(['tableoid', 'ctid', 'xmin', 'XMAX', 'cmin', 'cmax', '__proto__'])('of a column can not be %s', (column) => {
    expect(withColumn(column)).toThrow(expect.objectContaining({ code: 'NAME_INVALID' }))
  })

  it('of a projection can not be sqlite, whose indexes would be named like those of SQLite itself', () => {
    const define = () => defineProjection('sqlite', { events: notes, initial: () => ({}), on: {} })
    expect(define).toThrow(expect.objectContaining({ code: 'NAME_INVALID' }))
  })

  it.for([10n, Symbol('s'), hostileProxy({}), Object.create(null)])(
    'of a schema can be no value of another kind',
    (name) => {
      expect(() => checkSchema(name)).toThrow(expect.objectContaining({ code: 'NAME_INVALID' }))
    },
  )
})

describe('a configuration', () => {
  it.for([
    ['a logger that can not log', { logger: { info: () => undefined } }],
    ['a value that throws when it is looked at', { events: hostileProxy({}) }],
    ['more holes than anybody can count', { subscriptions: Object.assign([], { length: 2 ** 32 - 1 }) }],
  ] as const)('is refused with %s', ([, config]) => {
    expect(() => defineConfig(config as object)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  it.for(['Object.create(null)', 'new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })', 'null'])(
    'that throws %s is told of like any other',
    async (thrown) => {
      using place = createPlace({ 'holdfast.config.ts': `throw ${thrown}` })
      const { code, stderr } = await place.call(['status'])
      expect(code).toBe(1)
      expect(stderr).toMatch(/^CONFIG_INVALID: .*\nNext: .*\n$/)
    },
  )
})

it.for([
  ['events', 'history', 'nobody'],
  ['projections', 'get', 'balances', 'nobody'],
  ['projections', 'history', 'balances', 'nobody'],
])('who wants to see what is not there leaves nothing in the audit: %s %s', async (args) => {
  using place = createPlace()
  expect((await place.call(['start', '--drain'])).code).toBe(0)
  const { code } = await place.call([...args, '--reveal', '--reason', 'to see it'])
  expect(code).toBe(2)
  await using store = await place.open()
  expect(await store.audit.list(0, 10)).toEqual([])
})

it.for([
  ['a time that is a time only to some machines', { time: 'order 12' }],
  ['a schema version that no column takes', { schemaVersion: 2 ** 31 }],
])('an import refuses %s, and writes nothing', async ([, wrong]) => {
  await using store = await createTemporaryStore()
  const operator = createOperator({ store, subscriptions: [], by: 'ada' })
  const event = { position: 1, id: 'i', type: 'A', key: 'k', schemaVersion: 1, time: '2026-01-01T00:00:00Z', body: '1' }
  const lines = [
    { holdfast: 'letters', version: 1 },
    { kind: 'event', event: { ...event, ...(wrong as object) } },
  ]
  const work = operator.importLetters(
    lines.map((line) => JSON.stringify(line)),
    { reason: 'to see' },
  )
  await expect(work).rejects.toMatchObject({ code: 'IMPORT_INVALID' })
  expect([await store.log.end(), await store.audit.list(0, 10)]).toEqual([0, []])
})

it.for([
  ['nested deeper than any stack', '['.repeat(100_000) + ']'.repeat(100_000), 'Noted'],
  ['of what its schema makes something that JSON can not hold', '1', 'Counted'],
] as const)('a letter %s is shown all the same', async ([, body, type]) => {
  using place = createPlace({
    'holdfast.config.ts': `
      import { defineConfig, defineEvents, defineProjection, defineSubscription } from 'holdfast'
      import { z } from 'zod'
      const events = defineEvents({ Noted: z.any(), Counted: z.coerce.bigint() })
      const on = { Noted: () => undefined, Counted: () => undefined }
      const foreign = defineProjection('foreign', { events, initial: () => ({}), on })
      export default defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [defineSubscription(foreign)] })`,
  })
  const store = await place.open()
  const source = createScriptedSource()
  source.deliver({ key: 'a', type, version: 1, body })
  const events = defineEvents({ Noted: z.any(), Counted: z.any() })
  const throwing = () => {
    throw new Error('no')
  }
  const fold = defineProjection('foreign', { events, initial: () => ({}), on: { Noted: throwing, Counted: throwing } })
  const subscription = defineSubscription(fold, { source })
  const engine = createEngine({ store, subscriptions: [subscription], logger: silent })
  await engine.start()
  await engine.drain()
  await engine.stop()
  await store.close()
  const shown = await place.json(['dlq', 'show', 'foreign', '1', '--reveal', '--reason', 'to see it'])
  expect(shown).toMatchObject({ code: 0, ok: true })
  expect((await place.call(['dlq', 'show', 'foreign', '1', '--reveal', '--reason', 'to see it'])).code).toBe(0)
})

it('a time that is far away comes back as it was', async () => {
  await using store = await createTemporaryStore()
  const log = createLog({ store })
  const time = new Date(8.64e15)
  await log.append('a', [{ type: 'A', data: 1, time }])
  await log.append('b', [{ type: 'A', data: 1, time: time.toISOString() }])
  const { events } = await store.log.readAll(0, { events: 2, bytes: 1_000 })
  expect(events.map((event) => event.time)).toEqual([time.toISOString(), time.toISOString()])
})

describeNewest('a source', (server) => {
  // More than any index takes, and nothing in it that could be written shorter.
  const long = Array.from({ length: 3_000 }, (_, i) => String.fromCharCode(33 + ((i * i * 31 + i * 7) % 20_000))).join(
    '',
  )
  it.for([
    ['a key that no index takes', { key: long }],
    ['an id that no index takes', { id: long }],
    ['a schema version that no column takes', { schemaVersion: 2 ** 31 }],
    ['a version that is no number', { version: Object.create(null) as number }],
  ] as const)('with %s stops its subscription, and does not wait for the store for ever', async ([, wrong]) => {
    await using database = await cloneDatabase(server)
    await using store = await createPostgresStore({ connection: database.url })
    const source = createScriptedSource()
    // Of a type that is not known, so that it would be held.
    const event: ScriptedEvent = { key: 'a', type: 'Strange', version: 1, id: 'i', body: '1' }
    source.deliver({ ...event, ...wrong })
    const fold = defineProjection('foreign', { events: notes, initial: () => ({}), on: {} })
    const subscription = defineSubscription(fold, { source, unknown: 'hold' })
    await using engine = createEngine({ store, subscriptions: [subscription], logger: silent })
    await engine.start()
    await expect(engine.drain()).rejects.toMatchObject({
      code: 'SUBSCRIPTION_FAILED',
      cause: { code: 'SOURCE_INVALID' },
    })
    expect(await store.subscriptions.partitions('foreign')).toMatchObject([{ checkpoint: { position: 0 } }])
  })
})
