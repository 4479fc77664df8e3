import { expect, it } from 'vitest'
import { noCounts } from '../subscription/checkpoint.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'
import type { Generation } from './generation.ts'
import { ProgressMeter } from './progress.ts'

function generationAt(...partitions: { position: number; applied: number; held?: number }[]): Generation {
  const states = partitions.map(({ position, applied, held = 0 }) => ({
    checkpoint: { position, counts: { ...noCounts(), applied, held } },
  })) as PartitionState[]
  const names = { subscription: 'balances', name: 'balances~2', kind: 'fold', table: 'balances__v2' } as const
  return { ...names, version: 2, isLive: false, retiredAt: undefined, partitions: states }
}

it('tells how many are done, how many there are, how fast and how long it takes', () => {
  const meter = new ProgressMeter()
  meter.look(generationAt({ position: 0, applied: 0 }, { position: 0, applied: 0 }), 4_000, 0)

  const progress = meter.look(
    generationAt({ position: 2_000, applied: 980, held: 20 }, { position: 1_000, applied: 500 }),
    4_000,
    1_000,
  )

  expect(progress).toEqual({
    subscription: 'balances',
    version: 2,
    events: 1_500,
    total: 4_000,
    held: 20,
    eventsPerSecond: 1_500,
    etaSeconds: 2_500 / 1_500,
    isLevel: false,
  })
})

it('is level when it is as far as the log was at the last look, and stays so', () => {
  const meter = new ProgressMeter()
  expect(meter.look(generationAt({ position: 90, applied: 90 }), 100, 0).isLevel).toBe(false)
  expect(meter.look(generationAt({ position: 100, applied: 100 }), 110, 250)).toMatchObject({
    isLevel: true,
    etaSeconds: 0,
  })
  expect(meter.look(generationAt({ position: 100, applied: 100 }), 900, 500).isLevel).toBe(true)
})

it('knows no time of arrival while nothing moves', () => {
  const meter = new ProgressMeter()
  meter.look(generationAt({ position: 0, applied: 0 }), 100, 0)
  expect(meter.look(generationAt({ position: 0, applied: 0 }), 100, 1_000).etaSeconds).toBeUndefined()
})
