import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { commandIn, describeCli, holdSome, why } from './cli-stores.ts'

describeCli('a redrive of a subscription that is paused', (open) => {
  it('is accepted, waits, and runs when the subscription is resumed', async () => {
    using place = open()
    await holdSome(place)
    writeFileSync(join(place.folder, 'fixed'), '')
    await place.json(['subscriptions', 'pause', 'balances', '--reason', 'books closed'])
    const asked = await place.call(['dlq', 'redrive', 'balances', '--all', ...why])
    expect(asked).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/waits: balances is paused \(books closed\)/),
    })
    expect(asked.stdout + asked.stderr).not.toMatch(/nothing/i)
    const { redrives } = await place.json<{ redrives: { id: string; status: string }[] }>(['redrives', 'list'])
    expect(redrives).toMatchObject([{ status: 'running', lanes: 2, byState: { pending: 2 } }])
    expect(asked.stdout).toContain(redrives[0]?.id)
    expect(await place.json(['redrives', 'show', redrives[0]?.id ?? '', '--work'])).toMatchObject({
      code: 0,
      redrive: { status: 'running' },
      paused: { reason: 'books closed' },
    })
    // The hint is the way on.
    const [resume = []] = commandIn(asked.stderr.split('\n').find((line) => line.startsWith('Next:')) ?? '')
    expect(await place.call(resume)).toMatchObject({ code: 0 })
    await place.call(['start', '--drain'])
    expect(await place.json(['redrives', 'show', redrives[0]?.id ?? ''])).toMatchObject({
      redrive: { status: 'done', letters: 3 },
    })
  })
})
