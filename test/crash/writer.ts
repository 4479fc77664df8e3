import { createLog, type Store } from 'holdfast'
import { createRandom } from 'holdfast/testing'
import { ledgerEvents, nextPosting, type Posting } from './ledger.ts'

/** What the log said it has: per key, in order. */
export type Written = ReadonlyMap<string, readonly (Posting & { readonly id: string })[]>

const keys = 300
const appendsAtOnce = 40

/** Appends postings from a seed and remembers what was acknowledged. Some appends are sent twice. */
export function createWriter(store: Store, seed: number) {
  const log = createLog({ store, events: ledgerEvents })
  const random = createRandom(seed)
  const written = new Map<string, (Posting & { id: string })[]>()
  let head = 0
  let repeated = 0

  return {
    written: written as Written,
    get head() {
      return head
    },
    get repeated() {
      return repeated
    },
    /** About a hundred events. */
    async appendSome(): Promise<void> {
      const chosen = new Set(Array.from({ length: appendsAtOnce }, () => `key-${random.below(keys)}`))
      await Promise.all(
        Array.from(chosen, (key) => {
          const before = written.get(key) ?? []
          const postings = Array.from({ length: 1 + random.below(4) }, (_, i) => {
            const n = before.length + i + 1
            return { ...nextPosting(random, n), id: `${key}-${n}` }
          })
          return append(key, before, postings, random.below(20) === 0)
        }),
      )
    },
    async append(key: string, ...amounts: readonly number[]): Promise<void> {
      const before = written.get(key) ?? []
      const postings = amounts.map((amount, i) => ({ n: before.length + i + 1, amount }))
      await append(
        key,
        before,
        postings.map((posting) => ({ ...posting, id: `${key}-${posting.n}` })),
        false,
      )
    },
  }

  async function append(
    key: string,
    before: readonly (Posting & { id: string })[],
    postings: readonly (Posting & { id: string })[],
    twice: boolean,
  ): Promise<void> {
    const drafts = postings.map(({ id, n, amount }) => ({ id, type: 'Posted' as const, data: { n, amount } }))
    const { position } = await log.append(key, drafts)
    head = Math.max(head, position)
    written.set(key, [...before, ...postings])
    if (!twice) return
    const again = await log.append(key, drafts)
    if (!again.repeated) throw new Error(`${key}: the second append of the same events was taken for a new one.`)
    repeated += drafts.length
  }
}

export type Writer = ReturnType<typeof createWriter>
