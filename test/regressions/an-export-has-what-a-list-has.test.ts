import { expect, it } from 'vitest'
import { describeCli, holdSome, why } from './cli-stores.ts'

const flagsOf = (letters: readonly { position?: number; event?: { position: number } }[]) =>
  letters.map((letter) => letter.position ?? letter.event?.position)

describeCli('dlq export and dlq list', (open) => {
  it('have the same letters by default, with --all and with --status', async () => {
    using place = open()
    await holdSome(place)
    await place.json(['dlq', 'discard', 'balances', '--key', 'b', '--yes', ...why])
    const listed = async (...flags: string[]) =>
      flagsOf((await place.json<{ letters: { position: number }[] }>(['dlq', 'list', 'balances', ...flags])).letters)
    const exported = async (...flags: string[]) => {
      const { stdout } = await place.call(['dlq', 'export', 'balances', ...flags, ...why])
      const lines = stdout.trimEnd().split('\n').slice(1)
      return flagsOf(lines.map((line) => JSON.parse(line) as { event: { position: number } }))
    }
    expect(await exported()).toEqual([1, 2])
    expect(await listed()).toEqual([1, 2])
    expect(await exported('--all')).toEqual([1, 2, 3])
    expect(await listed('--all')).toEqual([1, 2, 3])
    expect(await exported('--status', 'discarded')).toEqual([3])
    expect(await listed('--status', 'discarded')).toEqual([3])
    expect(await place.json(['dlq', 'export', 'balances', '--all', '--status', 'parked', ...why])).toMatchObject({
      code: 2,
    })
  })
})
