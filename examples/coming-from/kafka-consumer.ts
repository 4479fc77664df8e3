// From a Kafka consumer to the log: the consumer only appends; the work that can fail is in a handler.
import type { Log } from 'holdfast'

/** The fields of a record that every Kafka client has. */
export interface KafkaRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint | string | number
  readonly key: string | null
  readonly value: string
}

// #region append
/**
 * Call it for each record in the order of the partition, and commit the offset after it resolves. A record that is delivered again after a
 * rebalance or a crash is recognised by its id. An error comes from the store, not from the record: stop, and do not commit the offset.
 */
export async function appendRecord(log: Log, { topic, partition, offset, key, value }: KafkaRecord): Promise<boolean> {
  const id = `${topic}/${partition}/${offset}`
  // Records without a key are ordered only within their partition.
  const lane = key ?? `${topic}/${partition}`
  const { repeated } = await log.append(lane, [{ id, ...read(value) }])
  return !repeated
}

/** An unreadable record is appended unchanged, with a type that no catalog has. With `unknown: 'hold'` it is held and not lost. */
function read(value: string): { readonly type: string; readonly json: string } {
  try {
    const { type } = JSON.parse(value) as { type?: unknown }
    // The original text, so that numbers beyond 2^53 do not change.
    if (typeof type === 'string' && type !== '') return { type, json: value }
  } catch {
    // Not JSON.
  }
  return { type: 'Unreadable', json: JSON.stringify(value) }
}
// #endregion
