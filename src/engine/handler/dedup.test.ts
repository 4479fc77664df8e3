import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import type { Event } from '../../event/event.ts'
import type { Dedupe } from '../../handler/handler.ts'
import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import { Dedup } from './dedup.ts'

const hour = 3_600_000

const eventOf = (id: string): Event => ({
  id,
  type: 'Credited',
  key: 'a',
  data: {},
  metadata: {},
  time: '2026-01-01T00:00:00.000Z',
})

/** With what is in the inbox, and what it was asked for. */
function remembering(dedupe: Partial<Dedupe> = {}, marks: readonly InboxMark[] = []) {
  const runtime = createVirtualRuntime()
  const { clock } = runtime
  const asked: (readonly string[])[] = []
  const inbox: Pick<InboxStore, 'find'> = {
    find: async (handler, keys) => {
      expect(handler).toBe('notify')
      asked.push(keys)
      return new Map(marks.filter(({ key }) => keys.includes(key)).map((mark) => [mark.key, mark]))
    },
  }
  const settings: Dedupe = { by: 'id', windowMs: hour, store: 'store', ...dedupe }
  return {
    dedup: new Dedup('notify', settings, inbox as InboxStore, clock),
    asked,
    clock,
    advance: (ms: number) => runtime.advance(ms),
  }
}

describe('what is in the store', () => {
  const mark = (key: string, until: number | undefined): InboxMark => ({ key, result: '"r"', until })

  it('is asked for once for many, and known from then on until its time is over', async () => {
    const base = createVirtualRuntime().clock.now()
    const { dedup, asked, advance } = remembering({}, [mark('one', base + 10), mark('two', undefined)])
    await dedup.learn(['one', 'one', 'two', 'new'].map(eventOf))
    expect(asked).toEqual([['one', 'two', 'new']])
    await advance(9)
    for (const [id, isDone] of [
      ['one', true],
      ['two', true],
      ['new', false],
    ] as const)
      expect([id, await dedup.isDone(eventOf(id))]).toEqual([id, isDone])
    await advance(1)
    expect(await dedup.isDone(eventOf('one'))).toBe(false)
    await advance(1_000 * hour)
    expect(await dedup.isDone(eventOf('two'))).toBe(true)
    expect(asked).toHaveLength(1)
  })

  it.for([
    ['memory is all there is', { store: 'memory' }, []],
    ['the position tells', { by: 'position' }, []],
    ['no key can be told', { by: () => '' }, []],
    ['of some no key can be told', { by: ({ id }) => (id === 'one' ? '' : id) }, [['two']]],
  ] satisfies [string, Partial<Dedupe>, string[][]][])(
    'is asked only for what has a key: %s',
    async ([, dedupe, keys]) => {
      const { dedup, asked } = remembering(dedupe)
      await dedup.learn(['one', 'two'].map(eventOf))
      await dedup.learn([])
      expect(asked).toEqual(keys)
    },
  )

  it.for([
    ['store', 'id', 'one', '"r"'],
    ['store', 'id', 'other', null],
    ['store', 'position', 'one', null],
    ['memory', 'id', 'one', null],
  ] as const)('has the result: in %s by %s of %s', async ([store, by, id, result]) => {
    const { dedup } = remembering({ store, by }, [mark('one', undefined)])
    expect(await dedup.resultOf(eventOf(id))).toBe(result)
  })
})

describe('one of the same key', () => {
  it.for([
    ['was done', true],
    ['was not done', false],
  ] as const)('is waited for, and when it %s the next one knows', async ([, wasDone]) => {
    const { dedup } = remembering()
    const [first, second, third] = [eventOf('one'), eventOf('one'), eventOf('one')]
    expect(await dedup.isDone(first)).toBe(false)
    const answers: string[] = []
    const ask = async (name: string, event: Event) => {
      answers.push(`${name} ${await dedup.isDone(event)}`)
    }
    const asked = [ask('second', second), ask('third', third)]
    await Promise.resolve()
    expect(answers).toEqual([])
    dedup.end(first, wasDone)
    await asked[0]
    if (!wasDone) {
      // The third waits for the second now.
      await Promise.resolve()
      answers.push('the second begins')
      dedup.end(second, true)
    }
    await asked[1]
    expect(answers).toEqual(
      wasDone ? ['second true', 'third true'] : ['second false', 'the second begins', 'third true'],
    )
  })

  it('is not there where the position tells', async () => {
    const { dedup } = remembering({ by: 'position' })
    const event = eventOf('one')
    expect(await dedup.isDone(event)).toBe(false)
    expect(dedup.end(event, true)).toBeUndefined()
    expect(await dedup.isDone(event)).toBe(false)
  })
})

describe('the mark', () => {
  it('has the key that was told at the beginning, whatever the handler made of the event', async () => {
    let key = 'before'
    const { dedup, clock } = remembering({ by: () => key })
    const event = eventOf('one')
    await dedup.isDone(event)
    key = 'after'
    expect(dedup.end(event, true, { paid: 5 })).toEqual({
      key: 'before',
      result: '{"paid":5}',
      until: clock.now() + hour,
    })
    expect(await dedup.isDone(eventOf('other'))).toBe(false)
  })

  it('is made once, by whoever began it', async () => {
    const { dedup } = remembering()
    const event = eventOf('one')
    expect(dedup.end(event, true)).toBeUndefined()
    await dedup.isDone(event)
    expect(dedup.end(event, true)).toMatchObject({ key: 'one' })
    expect(dedup.end(event, true)).toBeUndefined()
  })

  it('is made only of what was done, and only where it is kept', async () => {
    const failed = remembering()
    const event = eventOf('one')
    await failed.dedup.isDone(event)
    expect(failed.dedup.end(event, false)).toBeUndefined()
    expect(await failed.dedup.isDone(event)).toBe(false)
    const inMemory = remembering({ store: 'memory' })
    await inMemory.dedup.isDone(event)
    expect(inMemory.dedup.end(event, true)).toBeUndefined()
    expect(await inMemory.dedup.isDone(event)).toBe(true)
  })

  it('has no end where the window has none', async () => {
    const { dedup } = remembering({ windowMs: Number.POSITIVE_INFINITY })
    const event = eventOf('one')
    await dedup.isDone(event)
    expect(dedup.end(event, true)).toEqual({ key: 'one', result: null, until: undefined })
  })

  it('keeps a result of 64 KiB, and no longer one', async () => {
    for (const [length, isKept] of [
      [65_534, true],
      [65_535, false],
    ] as const) {
      const { dedup } = remembering()
      const event = eventOf('one')
      await dedup.isDone(event)
      expect(dedup.end(event, true, 'x'.repeat(length))?.result !== null).toBe(isKept)
    }
  })
})

describe('a key', () => {
  it.for([
    ['', false],
    ['k', true],
    ['k'.repeat(512), true],
    ['k'.repeat(513), false],
    ['\ud800', false],
    ['a\0b', false],
    [5, false],
    [undefined, false],
  ] as const)('is a text that every store can have: %j', async ([key, isOne]) => {
    const { dedup } = remembering({ by: () => key as string })
    const asked = dedup.isDone(eventOf('one'))
    expect(
      await asked.then(
        () => true,
        (error: unknown) => !(error instanceof TypeError),
      ),
    ).toBe(isOne)
  })
})

describe('what is remembered in memory', () => {
  it('is a hundred thousand, the last that were done', async () => {
    const { dedup } = remembering({ store: 'memory' })
    const does = async (id: string) => {
      const event = eventOf(id)
      const isDone = await dedup.isDone(event)
      if (!isDone) dedup.end(event, true)
      return !isDone
    }
    for (let i = 0; i < 100_000; i++) await does(`event-${i}`)
    expect(await does('event-0')).toBe(false)
    expect(await does('one more')).toBe(true)
    expect(await does('event-1')).toBe(false)
    expect(await does('event-0')).toBe(true)
  })
})
