import type { Redrive } from '../redrive/redrive.ts'
import { reasonFlag } from './act.ts'
import type { Context } from './context.ts'

/** Why nothing works on a redrive, and the command that helps. */
export interface Waiting {
  readonly why: 'paused' | 'no-engine'
  readonly what: string
  readonly next: string
}

/** Undefined if the redrive has ended, or an engine runs its subscription. */
export async function waitingOf(ctx: Context, { id, subscription, status }: Redrive): Promise<Waiting | undefined> {
  if (status !== 'running') return undefined
  const { partitions } = await ctx.storedSubscription(subscription)
  const pause = partitions[0]?.pause
  if (pause)
    return {
      why: 'paused',
      what: `It waits: ${subscription} is paused (${pause.reason}).`,
      next: `holdfast subscriptions resume ${subscription} ${reasonFlag}`,
    }
  if (partitions.some(({ owner }) => owner !== undefined)) return undefined
  return {
    why: 'no-engine',
    what: `It waits: no engine runs ${subscription}.`,
    // Without its code this process can't do the work.
    next: (await ctx.subscriptions()).some(({ name }) => name === subscription)
      ? `holdfast redrives show ${id} --work`
      : 'Start the program that runs it: the configuration here does not declare it.',
  }
}

/** For a redrive that is watched: a restart or a take-over takes a moment, so it waits if it does so in two looks. */
export class WaitingTeller {
  readonly #ctx: Context
  #seen: string | undefined
  #told: string | undefined

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  async look(redrive: Redrive): Promise<void> {
    const { out } = this.#ctx
    const waiting = await waitingOf(this.#ctx, redrive)
    const isSure = waiting?.what === this.#seen
    this.#seen = waiting?.what
    if (!isSure || waiting?.what === this.#told) return
    this.#told = waiting?.what
    if (!waiting) return
    out.status('')
    out.talk(waiting.what)
    out.next(waiting.next)
  }
}
