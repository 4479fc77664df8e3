import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import {
  copyStore,
  createEngine,
  createOperator,
  defineProjection,
  defineSubscription,
  type Engine,
  HoldfastError,
  type Operator,
  type Store,
} from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { createScriptedSource, type ScriptedSource } from 'holdfast/testing'
import type { ArchivePart } from '../../../src/archive/archive.ts'
import type { Chance } from '../chance.ts'
import { createChance } from '../chance.ts'
import { type Door, expectThat, type Ground, type StoreKind } from '../door.ts'
import { bodyBytes, bodyText, jsonValue } from '../generate/json.ts'
import { mutated, oddText, oddTexts, readableText } from '../generate/text.ts'
import { anyThrown } from '../generate/thrown.ts'
import { anyValue, copyOf, isSame } from '../generate/value.ts'
import { notes } from './append.ts'
import { call, checkTold } from './cli.ts'
import { drained, silent } from './engine.ts'

interface Hospital {
  readonly choice: ReturnType<Ground['choose']>
  readonly store: Store
  readonly engine: Engine
  readonly source: ScriptedSource
  readonly operator: Operator
  /** Brings so many that are held, each of something else; `plain` ones have a type and a time that a log would take. */
  admit(chance: Chance, many: number, isPlain?: boolean): Promise<void>
}

/** A store with letters of all kinds: what can't be read, and what a fold threw over, whatever it threw. */
async function createHospital(ground: Ground, kind: StoreKind): Promise<Hospital> {
  const choice = ground.choose(kind)
  const store =
    'sqlite' in choice
      ? await createSqliteStore({ file: choice.sqlite })
      : await createPostgresStore({ ...choice.postgres, connections: 3 })
  let seed = 0
  const fold = defineProjection('foreign', {
    events: notes,
    initial: () => ({}),
    on: {
      Noted: () => {
        throw anyThrown(createChance(seed++))
      },
    },
  })
  const source = createScriptedSource()
  const subscription = defineSubscription(fold, { source, unknown: 'hold' })
  const engine = createEngine({ store, subscriptions: [subscription], logger: silent })
  await engine.start()
  const operator = createOperator({ store, subscriptions: [subscription], by: 'ada' })
  let number = 0
  return {
    choice,
    store,
    engine,
    source,
    operator,
    admit: async (chance, many, isPlain = false) => {
      seed = chance.below(2 ** 32)
      for (let i = 0; i < many; i++) {
        const text = oddText(chance).toWellFormed().replaceAll('\0', '')
        source.deliver({
          key: `${++number} ${readableText(chance)}`,
          type: isPlain || chance.percent(80) ? 'Noted' : `T${text}`,
          version: 1,
          body: chance.percent(50) ? bodyText(chance) : bodyBytes(chance),
          ...(chance.percent(30) && { metadata: `{"tenant":${JSON.stringify(oddText(chance, 9))}}` }),
          ...(!isPlain && chance.percent(30) && { time: `T${text}` }),
        })
      }
      await drained(engine)
      const held = await engine.letters({ subscription: 'foreign', after: number - many, limit: many })
      expectThat(held.length === many, 'not all of them are held', [held.length, many])
    },
  }
}

async function close({ engine, store }: Hospital): Promise<void> {
  await engine.stop()
  await store.close()
}

const looks = [
  ['dlq', 'show', 'foreign', '#'],
  ['dlq', 'show', 'foreign', '#', '--reveal', '--reason', 'to see it'],
  ['dlq', 'list', 'foreign'],
  ['dlq', 'incidents', 'foreign'],
  ['dlq', 'stats', 'foreign'],
  ['status'],
  ['dlq', 'export', 'foreign', '--reason', 'to see it'],
]

/** What was thrown, and what it was thrown over, can be shown to people and to programs. */
export const shownDoor = (kind: StoreKind): Door => ({
  name: `shown.${kind}`,
  outcomes: ['held'],
  cases: 20,
  open: async (ground) => {
    const hospital = await createHospital(ground, kind)
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'))
    const { choice } = hospital
    const where = 'sqlite' in choice ? choice.sqlite : choice.postgres.connection
    const schema = 'sqlite' in choice ? [] : ['--schema', choice.postgres.schema]
    let last = 0
    return {
      give: async (chance) => {
        await hospital.admit(chance, 2)
        last += 2
        for (const at of [last - 1, last]) {
          const look = chance.pick(looks).map((arg) => (arg === '#' ? String(at) : arg))
          const json = chance.percent(50) && look[1] !== 'export' ? ['--json'] : []
          const told = await call(folder, [...look, ...json, '--store', where, ...schema], { HOLDFAST_USER: 'ada' })
          checkTold(told)
          expectThat(told.code === 0 || told.code === 3, 'it could not be shown', told)
        }
        return 'held'
      },
      [Symbol.asyncDispose]: async () => {
        await close(hospital)
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
})

/** A person edits what is held. The event stays as it came, and what is tried instead is exactly what was given. */
export const reviseDoor = (kind: StoreKind): Door => ({
  name: `revise.${kind}`,
  outcomes: ['accepted', 'refused'],
  cases: 40,
  open: async (ground) => {
    const hospital = await createHospital(ground, kind)
    const { operator } = hospital
    let last = 0
    return {
      give: async (chance) => {
        if (last === 0 || chance.percent(20)) {
          await hospital.admit(chance, 3)
          last += 3
        }
        const name = { subscription: 'foreign', position: 1 + chance.below(last) }
        const { letter: before } = await operator.letter(name)
        const data = anyValue(chance)
        const given = chance.percent(50) ? { data } : { json: chance.percent(10) ? data : bodyText(chance) }
        const copy = copyOf(given.data)
        const error = await operator.revise(name, given as { data: unknown }, 'to see').then(
          () => undefined,
          (thrown: unknown) => ({ thrown }),
        )
        const { letter: after } = await operator.letter(name)
        const isSameEvent = Buffer.compare(bytesOf(before.event.body), bytesOf(after.event.body)) === 0
        expectThat(isSameEvent && typeof before.event.body === typeof after.event.body, 'the event was changed', after)
        if (error) {
          expectThat(error.thrown instanceof HoldfastError, 'it was refused with no error of ours', error.thrown)
          expectThat(isSame(before.revision ?? null, after.revision ?? null), 'it was refused, and revised', after)
          return 'refused'
        }
        const body = after.revision?.body ?? ''
        if ('json' in given) expectThat(body === given.json, 'its text came back changed', after)
        else if (copy) expectThat(isSame(JSON.parse(body), copy.copy), 'its data came back changed', after)
        return 'accepted'
      },
      [Symbol.asyncDispose]: () => close(hospital),
    }
  },
})

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body
}

/** What was exported, and somebody had in their hands since. It goes in as a whole, or nothing of it does. */
export const importDoor = (kind: StoreKind): Door => ({
  name: `import.${kind}`,
  outcomes: ['accepted', 'refused'],
  cases: 30,
  open: async (ground) => {
    const hospital = await createHospital(ground, 'sqlite')
    let store = await ground.open(kind)
    let lines: string[] = []
    return {
      give: async (chance) => {
        if (lines.length === 0) {
          await hospital.admit(chance, 10, true)
          const query = { subscription: 'foreign' }
          for await (const line of hospital.operator.exportLetters({ query, reason: 'to move' })) lines.push(line)
        }
        const operator = createOperator({ store, subscriptions: [], by: 'ada' })
        const given = lines.map((line, i) => (chance.percent(i === 0 ? 3 : 8) ? brokenLine(chance, line) : line))
        if (chance.percent(10)) given.push(chance.pick(given))
        const imported = await operator
          .importLetters(given, { reason: 'to see' })
          .catch((thrown: unknown) => ({ thrown }))
        const { events } = await store.log.readAll(0, { events: 100, bytes: 1e9 })
        if ('thrown' in imported) {
          expectThat(imported.thrown instanceof HoldfastError, 'it was refused with no error of ours', imported.thrown)
          const deeds = await store.audit.list(0, 1)
          expectThat(
            events.length === 0 && deeds.length === 0,
            'it was refused, and something was written',
            imported.thrown,
          )
          return 'refused'
        }
        expectThat(events.length === imported.events, 'not all was written', imported)
        const bodies = new Set(given.flatMap(bodyOf))
        for (const { body } of events) expectThat(bodies.has(String(body)), 'a text came in changed', body)
        await store.close()
        store = await ground.open(kind)
        return 'accepted'
      },
      [Symbol.asyncDispose]: async () => {
        await close(hospital)
        await store.close()
      },
    }
  },
})

function bodyOf(line: string): string[] {
  try {
    const { event } = JSON.parse(line) as { event?: { body?: string } }
    return event?.body === undefined ? [] : [event.body]
  } catch {
    return []
  }
}

function brokenLine(chance: Chance, line: string): string {
  if (chance.percent(30)) return `${mutated(chance, line.trimEnd())}\n`
  const value = JSON.parse(line) as Record<string, unknown>
  const inside = chance.percent(70) ? (value['event'] as Record<string, unknown> | undefined) : value
  const target = inside ?? value
  const field = chance.pick([...Object.keys(target), 'body', 'base64', '__proto__'])
  const instead = chance.percent(50)
    ? jsonValue(chance)
    : chance.pick([...oddTexts, 0, -1, 1.5, 2 ** 31, 2 ** 53, 1e300])
  Object.defineProperty(target, field, { value: instead, enumerable: true, configurable: true, writable: true })
  return `${JSON.stringify(value)}\n`
}

/** All of it is the same in another store. */
export const copyDoor: Door = {
  name: 'copy.postgres',
  outcomes: ['accepted'],
  cases: 1,
  open: async (ground) => ({
    give: async (chance) => {
      const hospital = await createHospital(ground, chance.pick(ground.stores))
      await hospital.admit(chance, 25)
      for (let position = 1; position <= 5; position++)
        await hospital.operator
          .revise({ subscription: 'foreign', position }, { data: jsonValue(chance) }, readableText(chance))
          .catch((error: unknown) =>
            expectThat(error instanceof HoldfastError, 'it was refused with no error of ours', error),
          )
      await hospital.engine.stop()
      const store = await ground.open('postgres')
      // Throws where anything differs.
      await copyStore({ from: hospital.store, to: store })
      await hospital.store.close()
      await store.close()
      return 'accepted'
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
}

/** A store that is not quite what it says. The copy is the same, or says that it isn't, or there is none. */
export const restoreDoor: Door = {
  name: 'restore.postgres',
  outcomes: ['accepted', 'refused'],
  cases: 40,
  open: async (ground) => {
    const hospital = await createHospital(ground, 'sqlite')
    const parts: ArchivePart[] = []
    let to = await ground.open('postgres')
    const renew = async () => {
      await to.close()
      to = await ground.open('postgres')
    }
    return {
      give: async (chance) => {
        if (parts.length === 0) {
          await hospital.admit(chance, 10)
          await hospital.engine.stop()
          await hospital.store.snapshot(async (moment) => {
            for await (const part of moment.archive()) parts.push(part)
          })
        }
        const given = structuredClone(parts)
        for (let i = chance.below(3); i > 0; i--) change(chance, chance.pick(given))
        const archive = () => Readable.from(given) as AsyncIterable<ArchivePart>
        const from: Store = {
          ...hospital.store,
          snapshot: (read) => hospital.store.snapshot((moment) => read({ ...moment, archive })),
        }
        const error = await copyStore({ from, to, force: true }).then(
          () => undefined,
          (thrown: unknown) => ({ thrown }),
        )
        if (error === undefined) {
          await renew()
          return 'accepted'
        }
        const { thrown } = error
        expectThat(thrown instanceof HoldfastError, 'it was refused with no error of ours', thrown)
        if (thrown.code === 'COPY_DIFFERS') await renew()
        else expectThat(await isEmpty(to), 'it was refused, and something was written', thrown)
        return 'refused'
      },
      [Symbol.asyncDispose]: async () => {
        await close(hospital)
        await to.close()
      },
    }
  },
}

function isEmpty(store: Store): Promise<boolean> {
  return store.snapshot(async (moment) => {
    const { done } = await moment.archive()[Symbol.asyncIterator]().next()
    return done === true
  })
}

/** Some value in it becomes another one of its kind. */
function change(chance: Chance, inside: object): void {
  const keys = Object.keys(inside).filter((key) => key !== 'part')
  if (keys.length === 0) return
  const key = chance.pick(keys)
  const target = inside as Record<string, unknown>
  const value = target[key]
  if (value instanceof Uint8Array) target[key] = bodyBytes(chance)
  else if (typeof value === 'object' && value !== null) change(chance, value)
  else if (typeof value === 'string') target[key] = chance.percent(50) ? mutated(chance, value) : oddText(chance)
  else if (typeof value === 'number') target[key] = chance.pick([0, -1, 1.5, 2 ** 31, 2 ** 53, 1e300, value + 1])
  else if (typeof value === 'boolean') target[key] = !value
}
