import type { Clock, Random } from '../runtime/ports.ts'
import type { RecordedEvent } from './event.ts'
import { sha256Hex } from './sha256.ts'

/**
 * UUIDs of version 7: 48 bits of time, then a counter of 12 bits, then chance. Ids of one process sort in the order in which
 * they were made, also within a millisecond and when the clock is set back.
 */
export function createIds(clock: Clock, random: Random): () => string {
  let lastMs = 0
  let counter = 0
  return function nextId() {
    const now = Math.floor(clock.now())
    if (now > lastMs) {
      lastMs = now
      counter = random.u32() & 0x3ff
    } else if (++counter > 0xfff) {
      lastMs++
      counter = 0
    }
    const time = lastMs.toString(16).padStart(12, '0')
    const high = ((random.u32() & 0x3fff) | 0x8000).toString(16)
    const low = hex(random.u32(), 8) + hex(random.u32() & 0xffff, 4)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(counter, 3)}-${high}-${low}`
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

/**
 * The id of a foreign event that came without one: equal content, equal id, so that a second delivery can be told from a second event. Every
 * part is written as JSON, so that no two different events can run together into the same text.
 */
export function contentId(event: Pick<RecordedEvent, 'type' | 'key' | 'version' | 'time' | 'body'>): string {
  const body = typeof event.body === 'string' ? event.body : Array.from(event.body)
  return `sha256:${sha256Hex(JSON.stringify([event.type, event.key, event.version ?? null, event.time, body]))}`
}
