import { createCommands, defineEvents, defineHandler, defineProjection, type HandlerDefinition } from 'holdfast'
import type { CommandParts } from 'holdfast/testing'
import { z } from 'zod'

// A small bank with everything that the kit tests: a projection, commands, and a handler with somebody outside.

export const bank = defineEvents({
  Credited: z.object({ amount: z.number() }),
  Debited: z.object({ amount: z.number() }),
  Closed: z.object({}),
})

export const credited = (key: string, amount: number) => ({ key, type: 'Credited', data: { amount } }) as const
export const debited = (key: string, amount: number) => ({ key, type: 'Debited', data: { amount } }) as const
export const closed = (key: string) => ({ key, type: 'Closed', data: {} }) as const

export const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance) throw new RangeError(`${row.balance} is less than ${data.amount}`)
      return { balance: row.balance - data.amount }
    },
  },
})

export const accounts = (parts: CommandParts) =>
  createCommands({
    ...parts,
    events: bank,
    initial: () => ({ balance: 0, isClosed: false }),
    on: {
      Credited: (state, { data }) => ({ ...state, balance: state.balance + data.amount }),
      Debited: (state, { data }) => ({ ...state, balance: state.balance - data.amount }),
      Closed: (state) => ({ ...state, isClosed: true }),
    },
  })

export interface Mail {
  readonly to: string
  readonly amount: number
}

/** Somebody who sends mails, and knows by the key what they were asked before. */
export class Post {
  readonly sent: Mail[] = []
  readonly #asked = new Set<string>()

  async send(mail: Mail, key?: string): Promise<void> {
    await Promise.resolve()
    if (key !== undefined && this.#asked.has(key)) return
    if (key !== undefined) this.#asked.add(key)
    this.sent.push(mail)
  }

  sentTo(to: string): readonly Mail[] {
    return this.sent.filter((mail) => mail.to === to)
  }
}

export type Options = Partial<HandlerDefinition<typeof bank>>

export const receipts = (post: Post, options: Options = {}) =>
  defineHandler('receipts', {
    events: bank,
    on: {
      Credited: ({ key, data }, { idempotencyKey }) => post.send({ to: key, amount: data.amount }, idempotencyKey),
    },
    ...options,
  })

/** As so often: the mail is sent again when the process dies before it could note that it was. */
export const careless = (post: Post) =>
  defineHandler('receipts', {
    events: bank,
    on: { Credited: ({ key, data }) => post.send({ to: key, amount: data.amount }) },
  })

/** It keeps beside each row how often it was changed, as long as the row is the same object. */
export function remembering() {
  const changes = new WeakMap<object, number>()
  return defineProjection('remembering', {
    events: bank,
    initial: () => ({ changes: 0 }),
    on: {
      Credited: (row) => {
        const next = { changes: (changes.get(row) ?? 0) + 1 }
        changes.set(next, next.changes)
        return next
      },
    },
  })
}
