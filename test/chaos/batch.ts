/** One append: the events `first`, `first + 1`, … of a key. With `inTransaction`, a row of `business` has the id of the first. */
export interface Batch {
  readonly key: string
  readonly first: number
  readonly amounts: readonly number[]
  readonly inTransaction: boolean
}

export function idOf(key: string, n: number): string {
  return `${key}-${n}`
}

export function draftsOf({ key, first, amounts }: Batch) {
  return amounts.map((amount, i) => {
    const n = first + i
    return { id: idOf(key, n), type: 'Posted' as const, data: { n, amount } }
  })
}
