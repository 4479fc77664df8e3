import type { AppendOptions, Draft, ErrorCode } from 'holdfast'
import { createRandom } from 'holdfast/testing'

/** The work of the bank's tellers, generated from a seed, and the expected result, computed without Holdfast. */
export interface Workload {
  /** Each teller serves its own accounts, one step after the other. The tellers work concurrently. */
  readonly tellers: readonly (readonly Step[])[]
  readonly events: number
  readonly repeatedEvents: number
  readonly malformedAppends: number
}

export type Step =
  | { readonly kind: 'append'; readonly key: string; readonly drafts: readonly BankDraft[] }
  /** A repeated append, for example after a lost answer. */
  | { readonly kind: 'repeat'; readonly key: string; readonly drafts: readonly BankDraft[] }
  /** An append that must be rejected with this code. */
  | ({ readonly kind: 'malformed' } & Malformed)

export type BankDraft =
  | Draft<'AccountOpened', { owner: string; overdraft: number }>
  | Draft<'FundsCredited', { amount: number }>
  | Draft<'FundsDebited', { amount: number }>

type Entry = { readonly type: 'FundsCredited' | 'FundsDebited'; readonly data: { readonly amount: number } }

interface Malformed {
  readonly what: string
  readonly code: ErrorCode
  readonly key: string
  readonly drafts: readonly unknown[]
  readonly options?: AppendOptions
}

interface Teller {
  readonly steps: Step[]
}

interface AccountInTheMaking {
  readonly key: string
  readonly teller: Teller
  readonly overdraft: number
  readonly appends: BankDraft[][]
  balance: number
  events: number
  poisoned: boolean
}

const mostTellers = 500
const poisonAmounts = 25
const firstDay = Date.UTC(2026, 0, 1)
const owners = ['Ada', 'Barbara', 'Edsger', 'Grace', 'Kathleen', 'Leslie', 'Margaret', 'Niklaus', 'Tony', 'Xiaoyun']

export function createWorkload(seed: number, events: number, accounts: number): Workload {
  const random = createRandom(scatter(seed))
  const tellers = Array.from({ length: Math.min(mostTellers, accounts) }, (): Teller => ({ steps: [] }))
  const open: AccountInTheMaking[] = []
  const poisonEvery = Math.floor(events / 2 / Math.min(poisonAmounts, Math.ceil(accounts / 4)))
  const malformedEvery = Math.floor(events / Math.max(malformedKinds.length + 1, events / 400))
  let poisonDue = Math.floor(events / 4)
  let malformedDue = 0
  let repeatedEvents = 0
  let malformedAppends = 0

  for (let made = 0; made < events; ) {
    // The accounts are opened evenly over the first half.
    if (open.length < accounts && made >= (open.length * events) / (2 * accounts)) {
      const account = openAccount(open.length)
      open.push(account)
      append(account, [{ ...place(account, made++), type: 'AccountOpened', data: opening(account) }])
      continue
    }
    const account = open[random.below(open.length)] as AccountInTheMaking
    const drafts: BankDraft[] = []
    for (let size = Math.min(1 + random.below(3), events - made); size > 0; size--) {
      const isPoison = made >= poisonDue && made < events * 0.75 && !account.poisoned
      if (isPoison) poisonDue += poisonEvery
      drafts.push({ ...place(account, made++), ...(isPoison ? poison(account) : entry(account)) })
    }
    append(account, drafts)
    if (random.below(25) === 0) repeat(account)
    if (made >= malformedDue) {
      malformedDue += malformedEvery
      account.teller.steps.push({ kind: 'malformed', ...malformed(account) })
    }
  }
  return { tellers: tellers.map(({ steps }) => steps), events, repeatedEvents, malformedAppends }

  function openAccount(number: number): AccountInTheMaking {
    const key = `account-${String(number + 1).padStart(5, '0')}`
    const teller = tellers[number % tellers.length] as Teller
    return { key, teller, overdraft: 10_000 * random.below(11), appends: [], balance: 0, events: 0, poisoned: false }
  }

  function opening({ overdraft }: AccountInTheMaking): { owner: string; overdraft: number } {
    return { owner: owners[random.below(owners.length)] as string, overdraft }
  }

  function place(account: AccountInTheMaking, made: number): { id: string; time: string } {
    return { id: `${account.key}-${++account.events}`, time: new Date(firstDay + made * 1_000).toISOString() }
  }

  function entry(account: AccountInTheMaking): Entry {
    const amount = 1 + random.below(50_000)
    const isDebit = random.below(5) < 2 && account.balance - amount >= -account.overdraft
    account.balance += isDebit ? -amount : amount
    return { type: isDebit ? 'FundsDebited' : 'FundsCredited', data: { amount } }
  }

  /** Valid for the schema, but the projection can't apply it: it exceeds the overdraft or the largest safe number. */
  function poison(account: AccountInTheMaking): Entry {
    account.poisoned = true
    const owed = account.balance + account.overdraft
    if (random.below(4) > 0 || account.balance <= 0)
      return { type: 'FundsDebited', data: { amount: owed + 1 + random.below(1_000_000) } }
    return { type: 'FundsCredited', data: { amount: Number.MAX_SAFE_INTEGER } }
  }

  function append(account: AccountInTheMaking, drafts: BankDraft[]): void {
    account.appends.push(drafts)
    account.teller.steps.push({ kind: 'append', key: account.key, drafts })
  }

  function repeat(account: AccountInTheMaking): void {
    const drafts = account.appends[random.below(account.appends.length)] as BankDraft[]
    account.teller.steps.push({ kind: 'repeat', key: account.key, drafts })
    repeatedEvents += drafts.length
  }

  function malformed(account: AccountInTheMaking): Malformed {
    const kind = malformedKinds[malformedAppends++ % malformedKinds.length] as (
      account: AccountInTheMaking,
    ) => Malformed
    return kind(account)
  }
}

const type = 'FundsCredited'
const good = { type, data: { amount: 100 } }

/** Appends that the log must reject. */
const malformedKinds: readonly ((account: AccountInTheMaking) => Malformed)[] = [
  ({ key }) => refuse('EVENT_NOT_JSON', 'an amount that is not a number', key, { type, data: { amount: Number.NaN } }),
  ({ key }) => refuse('EVENT_NOT_JSON', 'a text that is cut off', key, { type, json: '{"amount": 1' }),
  ({ key }) =>
    refuse('EVENT_FORBIDDEN_KEY', 'a key "__proto__"', key, { type, data: JSON.parse('{"amount":1,"__proto__":{}}') }),
  ({ key }) => refuse('EVENT_TOO_DEEP', 'a value 100 levels deep', key, { type, data: { amount: 1, why: nest(100) } }),
  ({ key }) =>
    refuse('EVENT_TOO_LARGE', 'a note of 2 MB', key, { type, data: { amount: 1, note: 'x'.repeat(2_000_000) } }),
  ({ key }) => refuse('EVENT_TOO_MANY_KEYS', '10,001 keys', key, { type, data: manyKeys(10_001) }),
  ({ key }) => refuse('EVENT_SCHEMA', 'an amount in words', key, { type, data: { amount: 'twelve' } }),
  ({ key }) => refuse('EVENT_SCHEMA', 'an amount below zero', key, { type, data: { amount: -5 } }),
  ({ key }) => refuse('EVENT_SCHEMA', 'a bad event behind a good one', key, good, { type, data: {} }),
  ({ key }) => refuse('EVENT_TYPE_UNKNOWN', 'an unknown type', key, { type: 'FundsVanished', data: {} }),
  ({ key }) => refuse('NAME_INVALID', 'a type of 49 characters', key, { ...good, type: 'F'.repeat(49) }),
  ({ key }) => refuse('EVENT_FIELD_INVALID', 'an invalid time', key, { ...good, time: 'yesterday' }),
  () => refuse('EVENT_FIELD_INVALID', 'a key with a line break', 'account\n1', good),
  ({ key, appends }) => refuse('EVENT_ID_CONFLICT', 'an id that is taken', key, { ...good, id: appends[0]?.[0]?.id }),
  ({ key, events }) => ({
    ...refuse('EXPECTED_VERSION', 'an append that came too late', key, good),
    options: { expectedVersion: events - 1 },
  }),
]

function refuse(code: ErrorCode, what: string, key: string, ...drafts: readonly unknown[]): Malformed {
  return { code, what, key, drafts }
}

function nest(levels: number): unknown {
  return levels === 0 ? 0 : [nest(levels - 1)]
}

function manyKeys(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, i]))
}

/** Similar seeds would start with similar numbers. */
export function scatter(seed: number): number {
  return Math.imul(seed ^ (seed >>> 16), 0x45d9f3b) ^ 0x9e3779b9
}

export interface ExpectedAccount {
  readonly ids: string[]
  owner: string
  overdraft: number
  balance: number
  entries: number
  /** How many events are applied. The next event, if there is one, is held, and the rest are queued behind it. */
  applied: number
}

/** The expected final state of each account: the rules of bank.ts, written a second time on purpose. */
export function expectedAccounts({ tellers }: Workload): Map<string, ExpectedAccount> {
  const accounts = new Map<string, ExpectedAccount>()
  for (const step of tellers.flat()) {
    if (step.kind !== 'append') continue
    const account = accounts.get(step.key) ?? {
      ids: [],
      owner: '',
      overdraft: 0,
      balance: 0,
      entries: 0,
      applied: 0,
    }
    accounts.set(step.key, account)
    for (const draft of step.drafts) {
      const flows = account.applied === account.ids.length
      account.ids.push(draft.id as string)
      if (flows && happens(account, draft)) account.applied++
    }
  }
  return accounts
}

function happens(account: ExpectedAccount, { type: kind, data }: BankDraft): boolean {
  if (!data) return false
  if (kind === 'AccountOpened') {
    account.owner = data.owner
    account.overdraft = data.overdraft
    return true
  }
  const sign = kind === 'FundsDebited' ? -1n : 1n
  const after = BigInt(account.balance) + sign * BigInt(data.amount)
  if (after > BigInt(Number.MAX_SAFE_INTEGER) || after < -BigInt(account.overdraft)) return false
  account.balance = Number(after)
  account.entries++
  return true
}
