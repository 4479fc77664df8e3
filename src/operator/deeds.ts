import { announce } from '../subscription/announce.ts'
import { emptierOf } from '../subscription/begin-anew.ts'
import type { ResetReport } from '../subscription/subscription-store.ts'
import type { OperatorParts } from './parts.ts'

export async function pause(parts: OperatorParts, subscription: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await parts.partitionsOf(subscription)
  const deed = parts.deed({ act: 'subscription.pause', target: subscription, reason, details: {} })
  const made = { reason, at: deed.at }
  await parts.store.subscriptions.pause(subscription, made, deed)
  announce(parts.store, { act: 'pause', subscription, pause: made })
}

export async function resume(parts: OperatorParts, subscription: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await parts.partitionsOf(subscription)
  const deed = parts.deed({ act: 'subscription.resume', target: subscription, reason, details: {} })
  await parts.store.subscriptions.resume(subscription, deed)
  announce(parts.store, { act: 'resume', subscription })
}

export async function reset(parts: OperatorParts, name: string, given: string): Promise<ResetReport> {
  const reason = parts.reasonOf(given)
  const empty = emptierOf(parts.subscriptionOf(name))
  await parts.liveOf(name)
  await parts.partitionsOf(name)
  const deed = parts.deed({ act: 'subscription.reset', target: name, reason, details: {} })
  const report = await parts.store.subscriptions.reset(name, empty, deed)
  announce(parts.store, { act: 'reset', subscription: name })
  return report
}
