import { HoldfastError } from '../../errors.ts'
import { diffJson } from '../../event/diff.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Projection } from '../../projection/projection.ts'
import { createOperator } from '../../operator/operator.ts'
import { createVirtualRuntime } from '../virtual.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import { appendAll, checkEvents, titleOf, type TestEvent } from './events.ts'
import { heldLetters, rowsOf } from './look.ts'
import { explain, OutsideWatch } from './outside.ts'
import { createProcess, silent } from './process.ts'
import { createKitStore } from './store.ts'
import { watchedProjection } from './watched.ts'

/** The result of a projection: its rows and held lanes. */
interface Made {
  readonly rows: Record<string, unknown>
  readonly held: Record<string, string>
}

/** A way to run: the page size, and the events after which a new process starts. */
interface Way {
  readonly title: string
  readonly page: number
  readonly restartsAfter: readonly number[]
}

/**
 * Rows are updated for years and then rebuilt. This function folds the events one, two and all at a time, with a restart after
 * each; and rebuilds them beside a live version, to which the second half of the events is appended at the same time. The result
 * must equal one fold from the beginning.
 */
export async function expectRebuildEqual<Row, Columns, C extends EventCatalog>(
  projection: Projection<Row, Columns, C>,
  events: readonly TestEvent<NoInfer<C>>[],
): Promise<void> {
  const claim = new Claim('expectRebuildEqual')
  if ((projection as Partial<Projection> | undefined)?.kind !== 'fold')
    throw new HoldfastError('OPTION_INVALID', 'expectRebuildEqual needs a fold: the result of defineProjection.', {
      hint: 'Handlers are not rebuilt. For SQL of your own, use createTestEngine with a store that runs it.',
    })
  checkEvents(events, 'expectRebuildEqual')
  using watch = new OutsideWatch()
  const subject: Projection = watchedProjection(projection, watch)
  const all: readonly TestEvent[] = events
  const size = Math.max(all.length, 1)
  const expected = await fold(subject, all, { title: '', page: size, restartsAfter: [] })
  if (watch.calls.length > 0)
    claim.fail([`The fold of ${subject.name} depends on more than its events.`, ...explain(watch.calls, 'fold')])
  if (Object.keys(expected.rows).length === 0)
    claim.fail([
      `The ${all.length} events create no row of ${subject.name}, so there is nothing to test.`,
      ...Object.entries(expected.held).map(([lane, why]) => `  ${lane} is held: ${why}`),
    ])
  const everywhere = all.map((_, i) => i)
  const ways: Way[] = [1, 2, size].flatMap((page) => [
    { title: `as they came, ${pageTitle(page, size)}`, page, restartsAfter: [] },
    { title: `as they came, ${pageTitle(page, size)}, with a restart after each`, page, restartsAfter: everywhere },
    ...(page === 1
      ? everywhere.map((i) => ({ title: `with a restart after ${titleOf(all, i)}`, page, restartsAfter: [i] }))
      : []),
  ])
  for (const way of ways) compare(claim, subject.name, expected, await trickle(subject, all, way), way.title)
  compare(claim, subject.name, expected, await beside(subject, all), 'rebuilt beside the live one')
}

function pageTitle(page: number, size: number): string {
  return page === 1 ? 'one at a time' : page === size ? 'all at a time' : `${page} at a time`
}

/** All events exist before it starts. */
async function fold(projection: Projection, events: readonly TestEvent[], { page }: Way): Promise<Made> {
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  await appendAll(store, runtime, [projection], events)
  const process = createProcess({ ...runtime, store, subscriptions: [projection], page: { events: page } })
  await process.settle()
  await process.stop((ms) => runtime.advance(ms))
  return await made(store, projection)
}

/** Page by page, as events arrive over time. */
async function trickle(
  projection: Projection,
  events: readonly TestEvent[],
  { page, restartsAfter }: Way,
): Promise<Made> {
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  const begin = () => createProcess({ ...runtime, store, subscriptions: [projection], page: { events: page } })
  const stop = (old: ReturnType<typeof begin>) => old.stop((ms) => runtime.advance(ms))
  let process = begin()
  for (let i = 0; i < events.length; i += page) {
    await appendAll(store, runtime, [projection], events.slice(i, i + page))
    await process.settle()
    if (!restartsAfter.some((index) => index >= i && index < i + page)) continue
    await stop(process)
    process = begin()
  }
  await process.settle()
  await stop(process)
  return await made(store, projection)
}

/** The next version of the same code, built while the live one runs. */
async function beside(projection: Projection, events: readonly TestEvent[]): Promise<Made> {
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  const half = Math.ceil(events.length / 2)
  const next: Projection = { ...projection, version: projection.version + 1 }
  await appendAll(store, runtime, [projection], events.slice(0, half))
  const live = createProcess({ ...runtime, store, subscriptions: [projection] })
  await live.settle()
  let isBuilt = false
  const operator = createOperator({ ...runtime, store, subscriptions: [next], by: 'test' })
  const options = { reason: 'to compare', logger: silent }
  const building = operator
    .rebuild(next.name, { ...options, follow: true, page: { events: 1 } })
    .finally(() => (isBuilt = true))
  for (const event of events.slice(half)) {
    await runtime.advance(250)
    await appendAll(store, runtime, [projection], [event])
  }
  await live.settle()
  const switching = operator.switchRebuild(next.name, { ...options, wait: '1h' })
  // The first failure is thrown below.
  building.catch(() => undefined)
  switching.catch(() => undefined)
  while (!isBuilt) await runtime.advance(250)
  await building
  await switching
  await live.stop((ms) => runtime.advance(ms))
  return await made(store, next)
}

async function made(store: Parameters<typeof rowsOf>[0], projection: Projection): Promise<Made> {
  const letters = await heldLetters(store, [projection.name])
  const held = letters.map(
    ({ lane, event, failure }) => [`${lane} ${event.version}`, failure?.message ?? 'queued'] as const,
  )
  return { rows: await rowsOf(store, projection), held: Object.fromEntries(held) }
}

function compare(claim: Claim, name: string, expected: Made, actual: Made, title: string): void {
  for (const part of ['rows', 'held'] as const) {
    if (diffJson(expected[part], actual[part]).length === 0) continue
    claim.fail(
      [
        `The ${part === 'rows' ? 'rows' : 'held lanes'} of ${name} depend on how they are built: ${firstDifference(expected[part], actual[part])}.`,
        `  one fold from the beginning  ${shown(expected[part])}`,
        `  ${title}  ${shown(actual[part])}`,
        'A row may depend only on the previous row and the event: state that a fold keeps elsewhere is lost.',
      ],
      { expected: expected[part], actual: actual[part] },
    )
  }
}
