import { expect, it } from 'vitest'
import { describeCli, holdSome } from './cli-stores.ts'

describeCli('doctor --fail-on', (open) => {
  it('fails only for what it is asked to fail for, and shows the rest', async () => {
    using place = open()
    await holdSome(place)
    const doctor = (...flags: string[]) =>
      place.json<{ healthy: boolean; findings: { check: string; level: string }[] }>(['doctor', ...flags])
    // Held lanes are a warning; that no process runs is a problem.
    const all = await doctor()
    expect(all).toMatchObject({ code: 3, healthy: false })
    const found = new Set(all.findings.filter(({ level }) => level !== 'ok').map(({ check }) => check))
    expect(found).toEqual(new Set(['held', 'lease']))
    for (const [what, code] of [
      ['warning', 3],
      ['problem', 3],
      ['held', 3],
      ['lease', 3],
      ['lag', 0],
      ['lag,breaker', 0],
      ['lag,held', 3],
      ['never', 0],
    ] as const)
      expect({ what, ...(await doctor('--fail-on', what)) }).toMatchObject({
        what,
        code,
        healthy: code === 0,
        findings: all.findings.map(({ check }) => ({ check })),
      })
    expect(await doctor('--fail-on', 'nonsense')).toMatchObject({ code: 2 })
  })
})

describeCli('doctor --fail-on of a store that is not there', (open) => {
  it('fails whatever it is asked for: nothing could be examined', async () => {
    using place = open()
    for (const what of ['lag', 'problem', 'never'])
      expect({ what, code: (await place.json(['doctor', '--fail-on', what])).code }).toEqual({ what, code: 3 })
  })
})
