import { noLanes, type Redrive, type RedriveLane, type RedriveLaneState } from './redrive.ts'

/** The fields that a database stores in another form: JSON as text, and null instead of undefined. */
interface Stored {
  readonly filter: string
  readonly stages: string
  readonly rate: number | null
  readonly maxFailures: number | null
  readonly endedAt: number | null
  readonly endedReason: string | null
  readonly isWhole: boolean | number
}

/** A redrive as a query returns it. */
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
    isWhole: Boolean(row.isWhole),
  } as unknown as R
}

/** `byState`: the number of lanes per state, as JSON. */
export type RedriveRow = StoredRedrive<Omit<Redrive, 'byState'>> & { readonly byState: string }

export function toRedrive({ byState, ...row }: RedriveRow): Redrive {
  const states = JSON.parse(byState) as Partial<Record<RedriveLaneState, number>>
  return { ...fromStored<Omit<Redrive, 'byState'>>(row), byState: { ...noLanes(), ...states } }
}

/** A lane of a redrive as returned by a query. */
export type StoredLane<L extends Pick<RedriveLane, 'until'>> = Omit<L, 'until'> & { readonly until: number | null }

export function fromStoredLane<L extends Pick<RedriveLane, 'until'>>(row: StoredLane<L>): L {
  return { ...row, until: row.until ?? undefined } as unknown as L
}
