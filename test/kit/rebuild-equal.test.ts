import { defineProjection } from 'holdfast'
import { expectRebuildEqual } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { failureOf } from './failure-of.ts'
import { balances, bank, credited, debited, remembering } from './shop.ts'

const events = [credited('anna', 1), credited('bob', 2), debited('anna', 1), debited('bob', 3), credited('bob', 1)]

describe('a projection', () => {
  it('that is pure comes to the same however it is made, with what it holds', async () => {
    await expectRebuildEqual(balances, events)
  })

  it('that keeps something in memory does not', async () => {
    // It is right as long as the process lives, and starts over with it.
    const seen = new Map<string, number>()
    const counting = defineProjection('counting', {
      events: bank,
      initial: (key) => {
        seen.set(key, 0)
        return { events: 0 }
      },
      on: {
        Credited: (row, { key }) => {
          seen.set(key, (seen.get(key) ?? 0) + 1)
          return { ...row, events: seen.get(key) ?? 0 }
        },
      },
    })
    const twice = [credited('anna', 1), credited('anna', 2), credited('anna', 3)]
    // The live one and the one beside it count into the same variable.
    const error = await failureOf(expectRebuildEqual(counting, twice))
    expect(error.message).toMatch(
      /^The rows of counting depend on how they are built: anna\.events is \d, expected 3\.\n {2}one fold from the beginning {2}\{ anna: \{ events: 3 \} \}\n {2}rebuilt beside the live one/,
    )
    expect(error.stack).toContain('rebuild-equal.test.ts')
  })

  it('that knows its rows by more than what is in them does not survive a restart', async () => {
    const two = [credited('anna', 1), credited('anna', 2)]
    const { message } = await failureOf(expectRebuildEqual(remembering(), two))
    expect(message).toBe(
      [
        'The rows of remembering depend on how they are built: anna.changes is 1, expected 2.',
        '  one fold from the beginning  { anna: { changes: 2 } }',
        '  as they came, one at a time, with a restart after each  { anna: { changes: 1 } }',
        'A row may depend only on the previous row and the event: state that a fold keeps elsewhere is lost.',
      ].join('\n'),
    )
  })

  it('must not draw from chance', async () => {
    const drawn = defineProjection('drawn', {
      events: bank,
      initial: () => ({ number: 0 }),
      on: { Credited: () => ({ number: Math.random() }) },
    })
    const { message } = await failureOf(expectRebuildEqual(drawn, events))
    expect(message).toMatch(
      /^The fold of drawn depends on more than its events\.\n.*rebuild-equal\.test\.ts:\d+ calls Math\.random\./,
    )
  })
})
