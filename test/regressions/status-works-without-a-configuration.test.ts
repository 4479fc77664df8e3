import { createEngine, createLog } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { commandIn, describeCli } from './cli-stores.ts'

const none = { HOLDFAST_STORE: '' }
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describeCli('without a configuration', (open) => {
  it('status shows what a program does with a store that is named', async () => {
    using place = open({ 'holdfast.config.ts': '' })
    await using store = await place.open()
    const log = createLog({ store, events: bank })
    await log.append('a', [credited(1)])
    await log.append('b', [debited(1), credited(2)])
    const engine = createEngine({ store, subscriptions: [balances], name: 'quickstart', logger: silent })
    await engine.start()
    await engine.drain()
    const status = () => place.json(['status', '--store', place.store], { env: none })
    expect(await status()).toMatchObject({
      code: 0,
      subscriptions: [
        {
          name: 'balances',
          kind: 'fold',
          state: 'live',
          owners: ['quickstart'],
          counts: { applied: 1 },
          lag: { events: 0, seconds: 0 },
          held: { lanes: 1, letters: 2 },
          oldest: [{ lane: 'b', status: 'parked' }],
        },
      ],
    })
    await engine.stop()
    await log.append('a', [credited(1)])
    expect(await status()).toMatchObject({ subscriptions: [{ state: 'idle', lag: { events: 1 } }] })
    const { stdout } = await place.call(['status', '--store', place.store], { env: none })
    expect(stdout).toMatch(/balances +idle +1 .* +1 +2 /)
    expect(stdout).toContain('held balances: b since')
  })
})

describeCli('without a configuration and without a store', (open) => {
  it('the hint names a command that works with the store in it', async () => {
    using place = open({ 'holdfast.config.ts': '' })
    const store = await place.open()
    await store.close()
    const told = await place.call(['status'], { env: none })
    expect(told).toMatchObject({ code: 2, stderr: expect.stringMatching(/^CONFIG_MISSING: /) })
    const [command = []] = commandIn(told.stderr)
    expect(command.slice(0, 2)).toEqual(['status', '--store'])
    expect(await place.call(['status', '--store', place.store], { env: none })).toMatchObject({ code: 0 })
  })
})
