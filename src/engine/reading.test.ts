import { describe, expect, it } from 'vitest'
import type { RecordedEvent } from '../event/event.ts'
import { whole } from '../source/share.ts'
import type { Source, SourcePage } from '../source/source.ts'
import { Reading } from './reading.ts'

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
    const reading = new Reading(source, whole, false, new AbortController().signal)
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
    const reading = new Reading(source, whole, false, new AbortController().signal)
    grow(2)
    const page = await reading.read(0, limits)
    reading.readAhead(page, limits)
    grow(3)
    expect(await reading.read(2, limits)).toMatchObject({ events: [{ position: 3 }], through: 3 })
  })
})
