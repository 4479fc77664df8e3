import { describe, expect, it } from 'vitest'
import type { RecordedEvent } from '../../event/event.ts'
import { whole } from '../../source/share.ts'
import type { Source, SourcePage } from '../../source/source.ts'
import { PageReader } from './page-reader.ts'

const limits = { events: 2, bytes: 1_000 }

/** A log that grows when it is told to, and says where it ends, as that of PostgreSQL does. */
function growing() {
  let top = 0
  const event = (position: number) => ({ position }) as RecordedEvent
  const read = async (after: number): Promise<SourcePage> => {
    const events = [after + 1, after + 2].filter((position) => position <= top).map(event)
    const through = events.at(-1)?.position ?? after
    return { events, through, isEnd: through >= top }
  }
  const source = { read, name: 'growing', versions: 'contiguous' } as unknown as Source
  return { source, grow: (to: number) => (top = to) }
}

describe('reading ahead', () => {
  it('has the page that follows a full one', async () => {
    const { source, grow } = growing()
    const reading = new PageReader(source, whole, false, new AbortController().signal)
    grow(3)
    const page = await reading.read(0, limits)
    reading.readAhead(page, limits)
    // It was asked for before the log had grown.
    grow(4)
    expect(await reading.read(2, limits)).toMatchObject({ events: [{ position: 3 }], through: 3 })
  })

  // Whoever was woken for what had come since found a page from before, and slept until somebody looked at the log by chance.
  it('does not look for more behind the end, so that a wake finds what it is for', async () => {
    const { source, grow } = growing()
    const reading = new PageReader(source, whole, false, new AbortController().signal)
    grow(2)
    const page = await reading.read(0, limits)
    reading.readAhead(page, limits)
    grow(3)
    expect(await reading.read(2, limits)).toMatchObject({ events: [{ position: 3 }], through: 3 })
  })
})

function countedPages(pages: readonly SourcePage[]) {
  const asked: number[] = []
  const read = async (after: number): Promise<SourcePage> => {
    asked.push(after)
    return pages.find((page) => page.through > after) ?? { events: [], through: after }
  }
  const source = { read, name: 'counted', versions: 'contiguous' } as unknown as Source
  return { source, asked }
}

const page = (...positions: number[]): SourcePage => ({
  events: positions.map((position) => ({ position }) as RecordedEvent),
  through: positions.at(-1) ?? 0,
})
const positionsOf = ({ events }: SourcePage) => events.map(({ position }) => position)

describe('reading', () => {
  const { signal } = new AbortController()

  it('asks ahead after a page that is at least half full, and not after less', async () => {
    const { source, asked } = countedPages([page(1, 2), page(3)])
    const reading = new PageReader(source, whole, false, signal)
    reading.readAhead(await reading.read(0, limits), { events: 5, bytes: 1_000 })
    expect(asked).toEqual([0])
    reading.readAhead(page(1, 2), { events: 4, bytes: 1_000 })
    expect(asked).toEqual([0, 2])
    // It has it already; for another place it asks again.
    expect(positionsOf(await reading.read(2, limits))).toEqual([3])
    await reading.read(2, limits)
    expect(asked).toEqual([0, 2, 2])
    reading.readAhead(page(1, 2), limits)
    await reading.read(1, limits)
    expect(asked).toEqual([0, 2, 2, 2, 1])
  })

  it('forgets what it has read ahead when that may be wrong', async () => {
    const { source, asked } = countedPages([page(1, 2), page(3)])
    const reading = new PageReader(source, whole, false, signal)
    reading.readAhead(page(1, 2), limits)
    reading.forget()
    await reading.read(2, limits)
    reading.readAhead(page(1, 2), limits)
    reading.endBefore(undefined)
    await reading.read(2, limits)
    expect(asked).toEqual([2, 2, 2, 2])
  })

  it('has a page that was put back, and does not take it for the end any more', async () => {
    const { source, asked } = countedPages([page(1, 2), page(3)])
    const reading = new PageReader(source, whole, false, signal)
    const first = await reading.read(0, limits)
    for (let i = 0; i < 2; i++) {
      reading.putBack(0, { ...first, isEnd: true })
      expect(await reading.read(0, limits)).toEqual(first)
    }
    expect(asked).toEqual([0])
    reading.putBack(0, first)
    expect(positionsOf(await reading.read(2, limits))).toEqual([3])
    reading.putBack(0, first)
    reading.forget()
    await reading.read(0, limits)
    reading.putBack(0, first)
    reading.endBefore(2)
    expect(positionsOf(await reading.read(0, limits))).toEqual([1])
    expect(asked).toEqual([0, 2, 0, 0])
  })

  it('asks again, in its own turn, what failed ahead', async () => {
    let calls = 0
    const read = async () => {
      if (++calls === 1) throw new Error('away')
      return page(3)
    }
    const reading = new PageReader({ read, name: 'once' } as unknown as Source, whole, false, signal)
    reading.readAhead(page(1, 2), limits)
    expect(positionsOf(await reading.read(2, limits))).toEqual([3])
  })

  it('ends before a place, and reads nothing ahead until it may go on', async () => {
    const { source, asked } = countedPages([page(1, 2, 4, 5), page(6)])
    const reading = new PageReader(source, whole, false, signal)
    const read = async (end: number) => {
      reading.endBefore(end)
      const { events, through } = await reading.read(0, limits)
      return [events.length, through]
    }
    expect([await read(6), await read(5), await read(4), await read(3), await read(1)]).toEqual([
      [4, 5],
      [3, 4],
      [2, 2],
      [2, 2],
      [0, 0],
    ])
    asked.length = 0
    reading.readAhead(page(1, 2), limits)
    expect(asked).toEqual([])
    reading.endBefore(undefined)
    reading.readAhead(page(1, 2), limits)
    expect(asked).toEqual([2])
  })

  it('checks the pages of anybody else’s source', async () => {
    const back = { source: countedPages([{ events: page(2, 1).events, through: 2 }]).source }
    await expect(new PageReader(back.source, whole, true, signal).read(0, limits)).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
    })
    await expect(new PageReader(back.source, whole, false, signal).read(0, limits)).resolves.toBeDefined()
  })
})
