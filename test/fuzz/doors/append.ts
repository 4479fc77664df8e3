import { createEngine, createLog, defineEvents, defineProjection, HoldfastError, type StandardSchema } from 'holdfast'
import { parseJson } from '../../../src/event/parse.ts'
import type { Draft } from '../../../src/log/admit.ts'
import type { Chance } from '../chance.ts'
import { type Door, expectThat, type StoreKind } from '../door.ts'
import { bodyText, jsonValue } from '../generate/json.ts'
import { oddText, readableText } from '../generate/text.ts'
import { anyValue, copyOf, isSame } from '../generate/value.ts'
import { drained, silent } from './engine.ts'

/** Takes everything, so that nothing but the door itself refuses. */
export const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'fuzz', validate: (value) => ({ value }) },
}

export const notes = defineEvents({ Noted: anything, Counted: anything })

/** Keeps what it was told last. */
export const kept = defineProjection('kept', {
  events: notes,
  initial: () => ({ seen: 0, last: null as unknown }),
  on: {
    Noted: (row, { data }) => ({ seen: row.seen + 1, last: data }),
    Counted: (row) => ({ seen: row.seen + 1, last: null }),
  },
})

const fields = ['id', 'type', 'data', 'json', 'metadata', 'time', 'key', '__proto__', 'toString']
const witness = 'the witness'

/** What an application appends: a draft with something wrong in it, or with nothing wrong that is odd all the same. */
export const appendDoor = (kind: StoreKind): Door => ({
  name: `append.${kind}`,
  outcomes: ['accepted', 'refused'],
  cases: 60,
  open: async (ground) => {
    const store = await ground.open(kind)
    const log = createLog({ store })
    const engine = createEngine({ store, subscriptions: [kept], logger: silent })
    await engine.start()
    let last = 0
    let seen = 0
    const written = async () => (await store.log.readAll(last, { events: 100, bytes: 1e9 })).events
    const witnessed = async () => {
      last = (await log.append(witness, [{ type: 'Counted', data: 0 }])).position
      await drained(engine)
      expectThat((await engine.read(kept).get(witness))?.data.seen === ++seen, 'the witness was not applied')
    }
    return {
      give: async (chance) => {
        const key = chance.percent(90) ? readableText(chance, 60) : oddText(chance, 600)
        const drafts = [draftOf(chance), ...(chance.percent(70) ? [] : chance.some(2, () => draftOf(chance)))]
        const copies = drafts.map(copyOfData)
        const list = chance.percent(4) ? anyValue(chance) : drafts
        const options = chance.percent(10) ? { expectedVersion: anyValue(chance, 0) } : {}
        const error = await log.append(key, list as Draft[], options as object).then(
          () => undefined,
          (thrown: unknown) => ({ thrown }),
        )
        const events = await written()
        if (error) {
          expectThat(error.thrown instanceof HoldfastError, 'it was refused with no error of ours', error.thrown)
          expectThat(events.length === 0, 'it was refused, and something was written', error.thrown)
          if (chance.percent(3)) await witnessed()
          return 'refused'
        }
        last = events.at(-1)?.position ?? last
        // The same ids again are the same append.
        if (events.length === 0) return 'accepted'
        expectThat(events.length === drafts.length, 'it was not written as a whole', events)
        for (const [i, event] of events.entries()) {
          const { json, type } = drafts[i] as Draft
          const copy = copies[i]
          expectThat(event.key === key && event.type === type, 'it came back with another key or type', event)
          if (json !== undefined) expectThat(event.body === json, 'its text came back changed', event)
          else if (copy) expectThat(isSame(parseJson(text(event.body)), copy.copy), 'its data came back changed', event)
        }
        await witnessed()
        return 'accepted'
      },
      check: async () => {
        await witnessed()
        const verified = await engine.verify('kept')
        expectThat(verified.ok, 'verify found something', verified)
        for (const { event } of await engine.letters({ subscription: 'kept', limit: 10_000 })) {
          const [logged] = (await store.log.readAll(event.position - 1, { events: 1, bytes: 1e9 })).events
          expectThat(logged?.body === event.body && logged.id === event.id, 'a letter is not what the log has', event)
        }
      },
      [Symbol.asyncDispose]: async () => {
        await engine.stop()
        await store.close()
      },
    }
  },
})

function copyOfData(draft: Draft): ReturnType<typeof copyOf> {
  try {
    return copyOf(draft.data)
  } catch {
    return undefined
  }
}

function text(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : new TextDecoder().decode(body)
}

function draftOf(chance: Chance): Draft {
  const body = chance.percent(50) ? { data: jsonValue(chance) } : { json: bodyText(chance) }
  const draft: Record<string, unknown> = { type: 'Noted', ...body }
  if (chance.percent(10)) draft['id'] = chance.percent(70) ? readableText(chance, 128) : oddText(chance, 140)
  if (chance.percent(10)) draft['type'] = oddText(chance)
  if (chance.percent(10)) draft['time'] = chance.percent(50) ? oddText(chance) : timeOf(chance)
  if (chance.percent(20))
    draft['metadata'] = { tenant: readableText(chance), [oddText(chance, 4)]: jsonValue(chance, 2) }
  if (chance.percent(30)) {
    const field = chance.pick(fields)
    Object.defineProperty(draft, field, {
      value: anyValue(chance),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return (chance.percent(2) ? anyValue(chance) : draft) as Draft
}

class OddDate extends Date {
  readonly #answer: unknown
  constructor(answer: unknown) {
    super(0)
    this.#answer = answer
  }
  override getTime(): number {
    return this.#answer as number
  }
}

function timeOf(chance: Chance): unknown {
  if (chance.percent(40)) return new Date(chance.pick([0, -1, 8.64e15, -8.64e15, Number.NaN, 2 ** 53]))
  return chance.percent(50) ? new OddDate(anyValue(chance, 0)) : new Proxy(new Date(0), {})
}
