import type { Clock, Random } from '../runtime/ports.ts'
import type { RecordedEvent } from './event.ts'
import { sha256Hex } from './sha256.ts'

/**
 * UUIDs of version 7: 48 bits of time, a 12-bit counter, then random bits. Ids of one process sort in order of creation, also
 * within a millisecond and when the clock is set back.
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
 * The id of a foreign event without one: equal content gives an equal id, so that a repeated delivery can be detected. Every part
 * is written as JSON, so that different events can't produce the same text.
 */
export function contentId(event: Pick<RecordedEvent, 'type' | 'key' | 'version' | 'time' | 'body'>): string {
  const body = typeof event.body === 'string' ? event.body : Array.from(event.body)
  return `sha256:${sha256Hex(JSON.stringify([event.type, event.key, event.version ?? null, event.time, body]))}`
}
