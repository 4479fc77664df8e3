import { createEngine, createLog, defineProjection, defineSubscription, type Engine } from 'holdfast'
import { createScriptedSource, type ScriptedEvent } from 'holdfast/testing'
import { parseJson } from '../../../src/event/parse.ts'
import type { Chance } from '../chance.ts'
import { type Door, expectThat, type Outcome, type StoreKind } from '../door.ts'
import { bodyBytes, bodyText, jsonText } from '../generate/json.ts'
import { oddText, readableText } from '../generate/text.ts'
import { anyValue, isSame } from '../generate/value.ts'
import { kept, notes } from './append.ts'
import { drained, silent } from './engine.ts'

const foreign = defineProjection('foreign', {
  events: notes,
  initial: () => ({ seen: 0, last: null as unknown }),
  on: {
    Noted: (row, { data }) => ({ seen: row.seen + 1, last: data }),
    Counted: (row) => ({ seen: row.seen + 1, last: null }),
  },
})

const witness = 'the witness'
const perCase = 6

/** What others send: any bytes, under any type, of any schema version. It is applied, or held to the byte. */
export const sourceDoor = (kind: StoreKind): Door => ({
  name: `source.${kind}`,
  outcomes: ['accepted', 'held'],
  cases: 40,
  open: async (ground) => {
    const store = await ground.open(kind)
    const source = createScriptedSource()
    const subscription = defineSubscription(foreign, { source, unknown: 'hold' })
    const engine = createEngine({ store, subscriptions: [subscription], logger: silent })
    await engine.start()
    let given = 0
    let seen = 0
    return {
      give: async (chance) => {
        const events = [eventOf(chance, ++given), ...chance.some(perCase, () => eventOf(chance, ++given))]
        source.deliver(...events, { key: witness, type: 'Counted', version: ++seen, body: '0' })
        await drained(engine)
        const row = await engine.read(foreign).get(witness)
        expectThat(row?.data.seen === seen, 'the witness was not applied', row)
        const outcomes: Outcome[] = []
        for (const event of events) outcomes.push(await outcomeOf(engine, event))
        return outcomes.includes('held') ? 'held' : 'accepted'
      },
      [Symbol.asyncDispose]: async () => {
        await engine.stop()
        await store.close()
      },
    }
  },
})

/** Each has a key of its own, so what became of it can be told. */
function eventOf(chance: Chance, number: number): ScriptedEvent {
  return {
    key: chance.percent(70) ? `${number}` : `${number} ${readableText(chance, 500)}`,
    type: chance.percent(85) ? 'Noted' : `T${storable(oddText(chance))}`,
    version: chance.percent(90) ? 1 : chance.pick([2, 2 ** 31, Number.MAX_SAFE_INTEGER]),
    schemaVersion: chance.percent(95) ? 1 : chance.pick([2, 2 ** 31 - 1]),
    body: chance.percent(50) ? bodyBytes(chance) : bodyText(chance),
    ...(chance.percent(20) && { id: `${number}${storable(oddText(chance)).slice(0, 100).toWellFormed()}` }),
    ...(chance.percent(20) && { metadata: chance.percent(50) ? jsonText(chance) : oddText(chance).toWellFormed() }),
    ...(chance.percent(20) && { time: `T${storable(oddText(chance))}` }),
  }
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '')
}

const fields = ['id', 'type', 'key', 'version', 'schemaVersion', 'time', 'metadata'] as const

async function outcomeOf(engine: Engine, given: ScriptedEvent): Promise<Outcome> {
  const { key, body = '' } = given
  const row = await engine.read(foreign).get(key)
  const [letter, ...more] = await engine.letters({ subscription: 'foreign', lane: key })
  if (row) {
    expectThat(letter === undefined, 'it was applied and held', given)
    expectThat(isSame(row.data.last, decoded(body)), 'it was applied as something else', [given, row])
    return 'accepted'
  }
  expectThat(letter !== undefined && more.length === 0, 'it was neither applied nor held once', given)
  for (const field of fields) {
    if (given[field] === undefined) continue
    expectThat(letter.event[field] === given[field], `it was held with another ${field}`, [given, letter.event])
  }
  expectThat(isSameBody(letter.event.body, body), 'it was not held to the byte', [given, letter.event])
  return 'held'
}

function decoded(body: string | Uint8Array): unknown {
  return parseJson(typeof body === 'string' ? body : new TextDecoder('utf-8', { ignoreBOM: true }).decode(body))
}

function isSameBody(a: string | Uint8Array, b: string | Uint8Array): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b
  return Buffer.compare(a, b) === 0
}

/** A source that breaks its promise. Its subscription stops where it is, and no other. */
export const brokenSourceDoor = (kind: StoreKind): Door => ({
  name: `broken-source.${kind}`,
  outcomes: ['accepted', 'refused'],
  cases: 15,
  open: async (ground) => {
    const store = await ground.open(kind)
    const log = createLog({ store })
    let cases = 0
    let witnessed = 0
    return {
      give: async (chance) => {
        const source = createScriptedSource()
        const name = `foreign-${++cases}`
        const projection = defineProjection(name, {
          events: notes,
          initial: () => ({ seen: 0 }),
          on: { Noted: ({ seen }) => ({ seen: seen + 1 }) },
        })
        const subscription = defineSubscription(projection, { source, unknown: 'hold' })
        await using engine = createEngine({ store, subscriptions: [subscription, kept], logger: silent })
        const failed = Promise.withResolvers<void>()
        engine.on('subscription.state', ({ subscription: which, to }) => {
          if (which === name && to.state === 'failed') failed.resolve()
        })
        await engine.start()
        const good = { key: 'good', type: 'Noted', version: 1, body: '1' }
        source.deliver(good, brokenEvent(chance))
        await log.append(witness, [{ type: 'Counted', data: 0 }])
        witnessed++
        const drain = drained(engine).then(() => 'drained' as const)
        drain.catch(() => undefined)
        const end = await Promise.race([drain, failed.promise])
        for (let i = 0; (await engine.read(kept).get(witness))?.data.seen !== witnessed; i++) {
          expectThat(i < 4_000, 'the witness, which reads elsewhere, was not applied')
          await new Promise((done) => setTimeout(done, 25))
        }
        const { subscriptions } = await engine.status()
        const status = subscriptions.find((each) => each.name === name)
        if (end === 'drained') return 'accepted'
        const error = status?.state.state === 'failed' ? status.state.error : undefined
        expectThat(
          (error as { code?: string } | undefined)?.code === 'SOURCE_INVALID',
          'it stopped of something else',
          status,
        )
        expectThat((await engine.read(projection).get('good')) === undefined, 'something of a refused page was applied')
        return 'refused'
      },
      [Symbol.asyncDispose]: () => store.close(),
    }
  },
})

function brokenEvent(chance: Chance): ScriptedEvent {
  const event: Record<string, unknown> = { id: 'i', key: 'k', type: 'Noted', version: 1, body: '1' }
  const longText = Array.from({ length: 3_000 }, () => String.fromCharCode(33 + chance.below(5_000))).join('')
  const field = chance.pick(['key', 'type', 'version', 'body', 'id', 'schemaVersion', 'metadata', 'time', 'position'])
  const number = chance.pick([0, -1, 1, 1.5, 2 ** 31, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, 5n])
  const isNumber = ['version', 'schemaVersion', 'position'].includes(field)
  event[field] = chance.percent(20)
    ? // The source itself asks for the length of a body.
      field === 'body'
      ? chance.pick([5, true, {}, [], new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), '\ud800', 10n])
      : anyValue(chance)
    : isNumber
      ? number
      : chance.percent(25)
        ? longText
        : oddText(chance, 600)
  return event as unknown as ScriptedEvent
}
