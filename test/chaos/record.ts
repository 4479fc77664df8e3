import type { Batch } from './batch.ts'

/** What became of the appends to a key, as its writer knows. */
export interface KeyRecord {
  /** Of the events that were acknowledged: what the first says, the second, … */
  readonly amounts: number[]
  /** The acknowledged appends that were part of a transaction, by their first event. */
  readonly inTransaction: number[]
  /** The last append, if it had no answer: it is there as a whole or not at all. */
  unknown: Batch | undefined
}

/** What the log must have, kept by nobody but the writers and us. */
export class AppendRecord {
  readonly keys = new Map<string, KeyRecord>()
  readonly problems: string[] = []

  acknowledge(batch: Batch): void {
    const record = this.#open(batch)
    record.amounts.push(...batch.amounts)
    if (batch.inTransaction) record.inTransaction.push(batch.first)
  }

  giveUp(batch: Batch): void {
    this.#open(batch).unknown = batch
  }

  #open({ key, first }: Batch): KeyRecord {
    const record = this.keys.get(key) ?? { amounts: [], inTransaction: [], unknown: undefined }
    this.keys.set(key, record)
    if (record.unknown || first !== record.amounts.length + 1)
      this.problems.push(`The writer of ${key} wrote event ${first} out of turn.`)
    return record
  }
}
