import { randomUUID } from 'node:crypto'
import { defineHandler, definePolicy, defineProjection, failure, fixed, park, retry } from 'holdfast'
import { defineSqlProjection } from 'holdfast/sqlite'
import { expectIdempotent } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { draw } from '../../src/testing/kit/seed.ts'
import { failureOf } from './failure-of.ts'
import { balances, bank, careless, credited, debited, type Mail, Post, receipts, remembering } from './shop.ts'

/** What nobody can exchange any more. */
const takenBefore = randomUUID

const events = [credited('anna', 1), debited('anna', 1), credited('bob', 2), credited('anna', 3)]

/** One that everybody can look into. */
const world = () => {
  const post = new Post()
  return { dependencies: post, observe: (key: string) => post.sentTo(key) }
}

describe('a handler', () => {
  it('that hands its key on is idempotent', async () => {
    await expectIdempotent(receipts, events, { world })
  })

  it('that does not is not, and the event is named', async () => {
    const error = await failureOf(expectIdempotent(careless, events, { world }))
    expect(error.message).toBe(
      [
        'receipts is not idempotent: anna Credited (1 of 4) was handled twice, and the result for anna differs.',
        "  once   [ { to: 'anna', amount: 1 }, { to: 'anna', amount: 3 } ]",
        "  twice  [ { to: 'anna', amount: 1 }, { to: 'anna', amount: 1 }, { to: 'anna', amount: 3 } ]",
        '  [1].amount is 1, expected 3.',
        'The process died after the call of send (call 1 of 3), before its answer; the next process repeated the work that was not recorded.',
        'Pass ctx.idempotencyKey to the called service: it is the same for each attempt. Or make the effect repeatable.',
      ].join('\n'),
    )
    expect(error.stack).toContain('idempotent.test.ts')
    expect(error.operator).toBe('expectIdempotent')
  })

  it('is found out without its dependencies, too', async () => {
    const sent: Mail[] = []
    const handler = defineHandler('receipts', {
      events: bank,
      on: { Credited: ({ key, data }) => void sent.push({ to: key, amount: data.amount }) },
    })
    const seen = () => {
      sent.length = 0
      return { observe: (key: string) => sent.filter(({ to }) => to === key) }
    }
    const { message } = await failureOf(expectIdempotent(handler, events, { world: seen }))
    expect(message).toContain('receipts is not idempotent: anna Credited (1 of 4) was handled twice')
    expect(message).toContain('The process died before its work was recorded;')
  })

  it('that does two things must be able to do the first again', async () => {
    // It asks whether it was there before, and is: but it died between the two.
    const halves = (post: Post & { readonly done: Set<string> }) =>
      defineHandler('halves', {
        events: bank,
        on: {
          Credited: async ({ key, data }, { idempotencyKey }) => {
            if (!note(post, idempotencyKey)) return
            await post.send({ to: key, amount: data.amount }, idempotencyKey)
          },
        },
      })
    const note = (post: { readonly noted: (key: string) => boolean } | Post, key: string) =>
      'noted' in post ? post.noted(key) : true
    const noting = () => {
      const post = new Post()
      const done = new Set<string>()
      const noted = (key: string) => !done.has(key) && done.add(key) !== undefined
      return { dependencies: Object.assign(post, { done, noted }), observe: (key: string) => post.sentTo(key) }
    }
    const { message } = await failureOf(expectIdempotent(halves, [credited('anna', 1)], { world: noting }))
    expect(message).toContain('The process died after the call of noted (call 1 of 2)')
    expect(message).toContain("  once   [ { to: 'anna', amount: 1 } ]\n  twice  []")
  })

  it('is compared with itself when its retries are over', async () => {
    const flaky = (post: Post) =>
      defineHandler('flaky', {
        events: bank,
        on: {
          Credited: async ({ key, data }, { idempotencyKey, attempt }) => {
            if (attempt < 3) throw failure.transient('busy')
            await post.send({ to: key, amount: data.amount }, idempotencyKey)
          },
        },
        failure: definePolicy({ transient: retry({ attempts: 5, backoff: fixed('30s') }).then(park) }),
      })
    await expectIdempotent(flaky, [credited('anna', 1)], { world })
  })

  it('that is not deterministic is told so, with the call that may be why', async () => {
    const lucky = (post: Post) =>
      defineHandler('lucky', {
        events: bank,
        on: { Credited: ({ key }) => post.send({ to: key, amount: Math.random() }) },
      })
    const { message } = await failureOf(expectIdempotent(lucky, events, { world }))
    expect(message).toContain('lucky is not deterministic: two runs over the same 4 events')
    expect(message).toMatch(/idempotent\.test\.ts:\d+ calls Math\.random\./)
  })

  it('may ask for the time if nothing comes of it', async () => {
    const timed = (post: Post) =>
      defineHandler('timed', {
        events: bank,
        on: {
          Credited: async ({ key, data }, { idempotencyKey }) => {
            const begin = performance.now()
            await post.send({ to: key, amount: data.amount }, idempotencyKey)
            return { took: performance.now() - begin }
          },
        },
      })
    await expectIdempotent(timed, [credited('anna', 1)], { world })
  })

  it('with a key of its own making is found out, and the call is named', async () => {
    const own = (post: Post) =>
      defineHandler('own', {
        events: bank,
        on: { Credited: ({ key, data }) => post.send({ to: key, amount: data.amount }, crypto.randomUUID()) },
      })
    const { message } = await failureOf(expectIdempotent(own, events, { world }))
    expect(message).toContain('own is not idempotent: anna Credited (1 of 4) was handled twice')
    expect(message).toMatch(/idempotent\.test\.ts:\d+ calls crypto\.randomUUID\./)
  })

  it('needs a world', async () => {
    await expect(expectIdempotent(receipts(new Post()), events)).rejects.toThrow('Give world: () =>')
    const closed = () => ({ observe: () => () => undefined })
    await expect(expectIdempotent(receipts(new Post()), events, { world: closed })).rejects.toThrow("can't be cloned")
    const sql = defineSqlProjection('sql', { events: bank, on: {} })
    // @ts-expect-error -- nobody can see what it wrote
    await expect(expectIdempotent(sql, [])).rejects.toThrow('a fold, a handler')
  })

  it('is tried at so many points as wanted, drawn by a seed', async () => {
    await expectIdempotent(receipts, events, { world, most: 2, seed: 7 })
    const { message } = await failureOf(expectIdempotent(careless, events, { world, most: 2, seed: 7 }))
    expect(message).toMatch(/\nHOLDFAST_SEED=7 selects the same 2 of \d+ points again\.$/)
    const points = Array.from({ length: 40 }, (_, i) => i)
    expect(draw(points, 40, 1)).toEqual(points)
    const some = draw(points, 5, 1)
    expect(new Set(some).size).toBe(5)
    expect(some).toEqual(some.toSorted((a, b) => a - b))
    expect(draw(points, 5, 1)).toEqual(some)
    expect(draw(points, 5, 2)).not.toEqual(some)
    await expect(expectIdempotent(receipts, events, { world, seed: 0.5 })).rejects.toThrow('The seed is 0.5.')
  })
})

describe('a projection', () => {
  it('that is pure survives every restart', async () => {
    await expectIdempotent(balances, [...events, debited('anna', 100), credited('anna', 1)])
  })

  it('that remembers something outside of its rows does not', async () => {
    let seen = 0
    const counting = defineProjection('counting', {
      events: bank,
      initial: () => ({ number: 0 }),
      on: { Credited: () => ({ number: ++seen }) },
    })
    const { message } = await failureOf(expectIdempotent(counting, events))
    expect(message).toContain('counting is not deterministic')
  })

  it('that knows its rows by more than what is in them does not, either', async () => {
    const { message } = await failureOf(expectIdempotent(remembering(), [credited('anna', 1), credited('anna', 2)]))
    expect(message).toContain(
      'remembering does not survive a restart: the result for anna differs.\n  once   { changes: 2 }',
    )
    expect(message).toContain('memory is lost')
  })

  it('must not ask for the time', async () => {
    const stamped = defineProjection('stamped', {
      events: bank,
      initial: () => ({ at: '' }),
      on: { Credited: () => ({ at: new Date().toISOString() }) },
    })
    const { message } = await failureOf(expectIdempotent(stamped, events))
    expect(message).toMatch(/idempotent\.test\.ts:\d+ calls new Date\(\)\.\nTake the time from the event/)
  })

  it('is not seen to draw by what was taken before, but what comes of it is', async () => {
    const drawn = defineProjection('drawn', {
      events: bank,
      initial: () => ({ id: '' }),
      on: { Credited: () => ({ id: takenBefore() }) },
    })
    const { message } = await failureOf(expectIdempotent(drawn, events))
    expect(message).toContain('drawn is not deterministic')
  })
})
