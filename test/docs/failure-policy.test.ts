import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  bounded,
  categorised,
  classify,
  consistencyFirst,
  definePolicy,
  differentiated,
  type FailureClass,
  failureClasses,
  type Policy,
  recovering,
} from 'holdfast'
import { describe, expect, it, vi } from 'vitest'
import { charge, payments } from '../../examples/policy.ts'
import { RatesError, rateOf, UnknownCurrency } from '../../examples/retry.ts'
import { codeRules } from '../../src/failure/codes.ts'
import { sqliteCodes, sqlStateClasses, sqlStates } from '../../src/failure/databases.ts'
import { httpStatuses } from '../../src/failure/http.ts'
import { bugs, ownErrors } from '../../src/failure/recognise.ts'
import { retryOptions } from '../../src/failure/retry.ts'
import { createVirtualRuntime } from '../../src/testing/virtual.ts'
import { timetable } from '../policy/timetable.ts'

const root = new URL('../../', import.meta.url)
const text = (path: string) => readFile(fileURLToPath(new URL(path, root)), 'utf8')

const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('')
const listed = (names: Iterable<string | number>) => Array.from(names, (name) => `\`${name}\``).join(', ')
const byClass = (entries: Iterable<readonly [string, FailureClass]>) => {
  const all = [...entries]
  return failureClasses
    .map((name) => [name, listed(all.filter(([, known]) => known === name).map(([code]) => code))] as const)
    .filter(([, codes]) => codes !== '')
}

/** In seconds: `at 0, 2, 6, 14 s, then park`. */
function cell(policy: Policy, failureClass: FailureClass): string {
  const pausesAt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].find(
    (inARow) => timetable(policy, failureClass, { inARow }).end === 'pause',
  )
  const { tries, end } = timetable(policy, failureClass, { most: 8 })
  const times = tries.map((ms) => ms / 1_000).join(', ')
  const course = tries.length === 1 ? end : `at ${times} s, ${end === 'and so on' ? end : `then ${end}`}`
  return pausesAt === undefined ? course : `pause after ${pausesAt} in a row; before, ${course}`
}

const presets = {
  definePolicy: definePolicy(),
  bounded: bounded(),
  consistencyFirst: consistencyFirst(),
  recovering: recovering(),
  differentiated: differentiated(),
  categorised: categorised(),
}

const tables = {
  codes: tableOf(
    ['rule', 'class', 'codes'],
    Object.entries(codeRules).map(([rule, known]) => [`\`${rule}\``, known.class, listed(known.codes)]),
  ),
  http: tableOf(
    ['class', 'status'],
    [
      ['transient', `${listed(httpStatuses.transient)}, 500 to 599, except those below`],
      ['permanent', `${listed(httpStatuses.permanent)}, 400 to 499, except those above`],
    ],
  ),
  sqlstate: tableOf(
    ['class', 'SQLSTATE', 'all that begin with'],
    failureClasses
      .map((name) => [
        name,
        ...[sqlStates, sqlStateClasses].map((table) =>
          listed(
            Object.keys(table)
              .filter((code) => table[code] === name)
              .toSorted(),
          ),
        ),
      ])
      .filter(([, codes, beginnings]) => codes || beginnings),
  ),
  sqlite: tableOf(
    ['class', 'SQLite'],
    byClass(Object.entries(sqliteCodes).map(([name, [, known]]) => [`SQLITE_${name}`, known])),
  ),
  own: tableOf(
    ['class', 'Holdfast error code'],
    [['infrastructure', 'every `StoreError`'], ...byClass(Object.entries(ownErrors)), ['permanent', 'every other']],
  ),
  bugs: tableOf(['class', 'error'], [['permanent', listed(bugs)]]),
  timetables: tableOf(
    ['policy', ...failureClasses],
    Object.entries(presets).map(([name, policy]) => [
      `\`${name}\``,
      ...failureClasses.map((failureClass) => cell(policy, failureClass)),
    ]),
  ),
}

describe('the reference of failure policies', () => {
  it.for(Object.keys(tables) as (keyof typeof tables)[])('has the table of %s as the code has it', async (name) => {
    const page = await text('docs/reference/failure-policy.md')
    expect(page.split(`<!-- ${name} -->\n`)[1]?.split('\n\n')[0]?.trimEnd()).toBe(tables[name].trimEnd())
  })

  it('has an entry for every class, every action and every option of retryWithBackoff', async () => {
    const page = await text('docs/reference/failure-policy.md')
    const firstCells = (heading: string) =>
      Array.from(
        (page.split(`## ${heading}\n`)[1] ?? '').split('\n## ')[0]?.matchAll(/^\| `(\w+)/gm) ?? [],
        ([, name]) => name,
      )
    expect(firstCells('Classes')).toEqual([...failureClasses])
    expect(firstCells('Actions')).toEqual(['retry', 'park', 'skip', 'block', 'pause'])
    expect(firstCells('Outside the engine')).toEqual([...retryOptions])
  })

  it('shows code that runs, to the letter', async () => {
    const page = await text('docs/reference/failure-policy.md')
    const blocks = [...page.matchAll(/<!-- (\S+) -->\n```ts\n([\s\S]*?)```/g)]
    expect(blocks.map(([, path]) => path)).toEqual(['examples/policy.ts', 'examples/retry.ts'])
    expect(page.match(/```ts/g)?.length).toBe(blocks.length)
    for (const [, path = '', code] of blocks) expect(code).toBe(await text(path))
  })
})

describe('its example of a policy', () => {
  const charged = async (status: number, headers = {}) => {
    const error: unknown = await charge({
      isTest: false,
      send: () => Promise.resolve(new Response(null, { status, headers })),
    }).catch((thrown: unknown) => thrown)
    return classify(error, payments.rules, 0)
  }

  it('does what it says', async () => {
    expect((await charged(402)).class).toBe('permanent')
    expect(await charged(423)).toMatchObject({ class: 'transient', retryAfterMs: 10_000 })
    expect(await charged(530)).toMatchObject({ class: 'dependency', dependency: 'the card network' })
    expect(await charged(429, { 'retry-after': '3' })).toMatchObject({ class: 'transient', retryAfterMs: 3_000 })
    expect((await charged(422)).class).toBe('permanent')
    const skipped: unknown = await charge({ isTest: true, send: () => Promise.reject(new Error('called')) }).catch(
      (thrown: unknown) => thrown,
    )
    expect(classify(skipped, [], 0).skip).toBe('a test account')
    expect(timetable(payments, 'transient').tries.length).toBe(6)
  })
})

describe('its example of retryWithBackoff', () => {
  /** Virtual time, and a service that gives these answers. */
  const asking = async (...answers: readonly Response[]) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const left = [...answers]
    const ask = () => Promise.resolve(left.shift() ?? Response.error())
    const runtime = createVirtualRuntime()
    const rate = rateOf('eur', ask, runtime).catch((error: unknown) => error)
    await runtime.advance(60_000)
    const warned = warn.mock.calls.map(([line]) => String(line))
    warn.mockRestore()
    return { rate: await rate, left: left.length, warned }
  }
  const answer = (status: number, headers = {}) => new Response(null, { status, headers })

  it('does what it says', async () => {
    const busy = answer(503, { 'retry-after': '3' })
    const twice = await asking(busy, answer(500), new Response('1.17'))
    expect(twice).toMatchObject({ rate: 1.17, left: 0 })
    expect(twice.warned).toEqual([
      'Attempt 1: transient, again in 3000 ms',
      expect.stringMatching(/^Attempt 2: transient, again in [234]\d\d ms$/),
    ])
    expect(await asking(answer(404), busy)).toMatchObject({ rate: expect.any(RatesError), left: 1, warned: [] })
    expect(await asking(answer(204), busy)).toMatchObject({ rate: expect.any(UnknownCurrency), left: 1 })
    expect(await asking(busy, busy, busy, busy, busy, busy)).toMatchObject({ rate: { response: busy }, left: 1 })
  })
})
