import { setTimeout } from 'node:timers/promises'
import { defineHandler, defineSubscription, type Policy, type Subscription } from 'holdfast'
import { bankEvents, type Movement } from '../projection/bank.ts'

const ioMs = 10

/** The call that a handler waits for, and the ideal with it. */
export const io = () => setTimeout(ioMs)

/** How many such calls there could be in a second. */
export const mostPerSecond = (concurrency: number) => (concurrency * 1_000) / ioMs

export interface NotifyOptions {
  readonly concurrency: number
  readonly act: (event: { readonly key: string; readonly data: Movement }) => unknown
  readonly failure?: Policy
}

/**
 * All of one name, so that whatever one of them left behind in a store another finds and can verify; and on every store in one
 * partition, because it is one loop that is measured.
 */
export function notifying({ concurrency, act, failure }: NotifyOptions): Subscription {
  const handler = defineHandler('notify', {
    events: bankEvents,
    concurrency,
    on: { FundsCredited: act, FundsDebited: act },
    ...(failure && { failure }),
  })
  return defineSubscription(handler, { partitions: 1 })
}

/** What is told of lanes that are held is no news here. */
export const quietLogger = { info: () => undefined, warn: () => undefined, error: console.error }
