import { setTimeout } from 'node:timers/promises'
import type { Member } from './fleet.ts'
import { subscriptions } from './postings.ts'
import { pick, type Scene } from './scene.ts'

const balanceMs = 20_000
const takeoverMs = 20_000

/**
 * Kills an engine and measures, for each partition it owned, how long it takes until another process has committed there. The
 * engines have the settings that Holdfast has by itself, and the writers go on all the time.
 */
export async function measureTakeover(scene: Scene): Promise<void> {
  const { fleet, random, tally } = scene
  if (!(await untilBalanced(scene))) return tally.problem(`The engines did not share the work in ${balanceMs} ms.`)
  const victim = pick(random, fleet.members)
  const waiting = new Set(
    (await ownedBy(scene, victim)).map(({ subscription, partition }) => `${subscription}/${partition}`),
  )
  let killedAt = Number.POSITIVE_INFINITY
  const allBack = fleet.reports.next((report) => {
    if (report.kind !== 'committed' || report.member === victim || report.at < killedAt) return false
    if (waiting.delete(`${report.subscription}/${report.partition}`)) {
      tally.add('takeovers')
      tally.takeoverMs.push(Math.round(report.at - killedAt))
    }
    return waiting.size === 0
  }, takeoverMs)
  killedAt = performance.timeOrigin + performance.now()
  await fleet.kill(victim)
  tally.add('kills')
  await allBack
  fleet.fill(victim)
  for (const name of waiting) tally.problem(`${name} had no new owner ${takeoverMs} ms after the old one was killed.`)
}

/** Everybody has something of everything. */
async function untilBalanced(scene: Scene): Promise<boolean> {
  const deadline = performance.now() + balanceMs
  while (performance.now() < deadline) {
    const owned = await Promise.all(scene.fleet.members.map((member) => ownedBy(scene, member)))
    const hasAll = owned.every(
      (own) => new Set(own.map(({ subscription }) => subscription)).size === subscriptions.length,
    )
    if (hasAll) return true
    await setTimeout(50)
  }
  return false
}

function ownedBy({ admin }: Scene, { name }: Member) {
  return admin.query<{ subscription: string; partition: number }>(
    'SELECT subscription, partition FROM holdfast.holdfast_partitions WHERE owner = $1',
    [name],
  )
}
