import { createEngine, type Store, type Subscription } from 'holdfast'
import type { Scene } from './scene.ts'

/** The effects of one key come in order, each with one key for ever. That none is missing is told by the ledger, and by the state. */
export function judgeEffects({ effects }: Pick<Scene, 'effects'>, subscriptions: readonly Subscription[]): string[] {
  const problems: string[] = []
  const unordered = new Set(
    subscriptions
      .filter(({ consumer }) => consumer.kind === 'handler' && consumer.order === 'none')
      .map(({ name }) => name),
  )
  const last = new Map<string, number>()
  const keys = new Map<string, string>()
  for (const { handler, key, n, idempotencyKey } of effects) {
    const lane = `${handler}/${key}`
    const before = last.get(lane) ?? 0
    if (n > before + 1 && !unordered.has(handler)) problems.push(`I2 ${lane}: the effect of ${n} came after ${before}`)
    last.set(lane, Math.max(before, n))
    const name = `${lane}/${n}`
    if ((keys.get(name) ?? idempotencyKey) !== idempotencyKey) problems.push(`I3 ${name} had two keys`)
    keys.set(name, idempotencyKey)
  }
  return problems
}

/** I1, I3, I16: everything anew from the log, by the engine's own ledger. */
export async function judgeVerified(store: Store, subscriptions: readonly Subscription[]): Promise<string[]> {
  const problems: string[] = []
  for (const subscription of subscriptions) {
    const { name, consumer, source } = subscription
    const live = (await store.rebuilds.list(name)).find(({ isLive }) => isLive)
    if (source || (live && consumer.kind !== 'handler' && live.version !== consumer.version)) continue
    const { ok, differences } = await createEngine({ store, subscriptions: [subscription] }).verify(name)
    if (!ok) problems.push(`I1 ${name}: ${JSON.stringify(differences)}`)
  }
  return problems
}
