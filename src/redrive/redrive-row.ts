import { noLanes, type Redrive, type RedriveLaneState } from './redrive.ts'

/** What a database has in another form: JSON as text, and null for what is not there. */
interface Stored {
  readonly filter: string
  readonly stages: string
  readonly rate: number | null
  readonly maxFailures: number | null
  readonly endedAt: number | null
  readonly endedReason: string | null
}

/** A redrive as a query gives it. */
export type StoredRedrive<R extends Pick<Redrive, keyof Stored>> = Omit<R, keyof Stored> & Stored

export function fromStored<R extends Pick<Redrive, keyof Stored>>(row: StoredRedrive<R>): R {
  return {
    ...row,
    filter: JSON.parse(row.filter) as Redrive['filter'],
    stages: JSON.parse(row.stages) as number[],
    rate: row.rate ?? undefined,
    maxFailures: row.maxFailures ?? undefined,
    endedAt: row.endedAt ?? undefined,
    endedReason: row.endedReason ?? undefined,
  } as unknown as R
}

/** With how many of its lanes are in which state, in JSON. */
export type RedriveRow = StoredRedrive<Omit<Redrive, 'byState'>> & { readonly byState: string }

export function toRedrive({ byState, ...row }: RedriveRow): Redrive {
  const states = JSON.parse(byState) as Partial<Record<RedriveLaneState, number>>
  return { ...fromStored<Omit<Redrive, 'byState'>>(row), byState: { ...noLanes(), ...states } }
}
