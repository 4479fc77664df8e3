import { defineHandler, defineProjection, definePolicy, failure, fixed, park, retry, skip } from 'holdfast'
import { given } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { failureOf } from './failure-of.ts'
import { accounts, balances, bank, closed, credited, debited, Post, receipts } from './shop.ts'

describe('a projection', () => {
  it('is given, is told, and then has rows', async () => {
    await given(balances, [credited('anna', 10)])
      .when([debited('anna', 4), credited('bob', 1)])
      .then({ anna: { balance: 6 }, bob: { balance: 1 } })
  })

  it('says what is different, with the line of the test', async () => {
    const error = await failureOf(given(balances, [credited('anna', 10)]).then({ anna: { balance: 11 } }))
    expect(error.message).toBe(
      [
        'The rows of balances differ: anna.balance is 10, expected 11.',
        '  Actual    { anna: { balance: 10 } }',
        '  expected  { anna: { balance: 11 } }',
      ].join('\n'),
    )
    expect(error.stack?.split('\n')[3]).toContain('given.test.ts')
    expect(error).toMatchObject({
      actual: { anna: { balance: 10 } },
      expected: { anna: { balance: 11 } },
      operator: 'then',
    })
  })

  it('has no rows that nobody expects, and all that are', async () => {
    const sentence = given(balances).when([credited('anna', 1), credited('bob', 2)])
    expect((await failureOf(sentence.then({ anna: { balance: 1 } }))).message).toContain(
      'bob is { balance: 2 }, expected it to be absent',
    )
    const all = { anna: { balance: 1 }, bob: { balance: 2 }, cleo: { balance: 3 } }
    expect((await failureOf(sentence.then(all))).message).toContain('cleo is missing, expected { balance: 3 }')
  })

  it('holds what fails, which is to be expected', async () => {
    const sentence = given(balances, [credited('anna', 10)]).when([debited('anna', 40), credited('bob', 1)])
    await sentence.thenHeld({ anna: 'RangeError' }, { anna: { balance: 10 }, bob: { balance: 1 } })
    await sentence.thenHeld({ anna: /less than 40/ })
    const error = await failureOf(sentence.then({ anna: { balance: 10 }, bob: { balance: 1 } }))
    expect(error.message).toBe(
      [
        'balances holds lanes unexpectedly.',
        '  anna Debited (version 2) is parked: RangeError: 10 is less than 40',
        'If this is intended, use .thenHeld(…).',
      ].join('\n'),
    )
    expect((await failureOf(sentence.thenHeld({ anna: 'TypeError' }))).message).toContain(
      "Expected balances to hold anna because of 'TypeError'.\n  anna Debited (version 2) is parked: RangeError",
    )
    expect((await failureOf(sentence.thenHeld({ anna: 'RangeError', bob: 'RangeError' }))).message).toContain(
      "Expected balances to hold bob because of 'RangeError', but it does not.",
    )
  })

  it('can be given only what goes through', async () => {
    const error = await failureOf(given(balances, [debited('anna', 1), credited('anna', 2)]).then({}))
    expect(error.message).toBe(
      [
        'balances holds a given event, so there is nothing to test.',
        '  anna Debited (version 1) is parked: RangeError: 0 is less than 1',
        '  anna Credited (version 2) is queued after it',
      ].join('\n'),
    )
  })

  it('is typed by its catalog and its rows', async () => {
    // @ts-expect-error -- there is no such event
    const stolen = given(balances).when([{ key: 'a', type: 'Stolen', data: {} }])
    await expect(stolen.then({})).rejects.toThrow('Stolen')
    // @ts-expect-error -- it has another amount
    const inWords = given(balances, [{ key: 'a', type: 'Credited', data: { amount: 'one' } }])
    await expect(inWords.then({})).rejects.toThrow('amount')
    // @ts-expect-error -- it has another row
    await expect(given(balances, []).then({ a: { balance: '1' } })).rejects.toThrow('a is missing')
    // oxlint-disable-next-line typescript/await-thenable -- the sentence has no end, which the compiler says too
    const unfinished = (async () => await (given(balances) as unknown))()
    await expect(unfinished).rejects.toThrow('is not complete')
  })

  it('fails when its fold asks for the time, and says where', async () => {
    const stamped = defineProjection('stamped', {
      events: bank,
      initial: () => ({ at: 0 }),
      on: { Credited: () => ({ at: Date.now() }) },
    })
    const error = await failureOf(
      given(stamped)
        .when([credited('anna', 1)])
        .then({ anna: { at: 0 } }),
    )
    expect(error.message).toMatch(
      /^The fold of stamped depends on more than its events\.\ntest\/kit\/given\.test\.ts:\d+ calls Date\.now\.\nTake the time/,
    )
  })
})

describe('a handler', () => {
  it('is done with what went through, and did it', async () => {
    const post = new Post()
    await given(receipts(post), [credited('anna', 1)])
      .when([credited('anna', 2), debited('anna', 1)])
      .then(['done', 'ignored'])
    expect(post.sent).toEqual([
      { to: 'anna', amount: 1 },
      { to: 'anna', amount: 2 },
    ])
  })

  const failing = (policy = definePolicy({})) =>
    defineHandler('notify', {
      events: bank,
      on: {
        Credited: ({ data }, { attempt }) => {
          if (data.amount === 1) throw failure.permanent('never')
          if (data.amount === 2 && attempt < 3) throw failure.transient('not yet')
          if (data.amount === 3) throw failure.skip('nobody minds')
        },
      },
      failure: policy,
    })
  const patient = definePolicy({ transient: retry({ attempts: 5, backoff: fixed('1m') }).then(park), outage: false })

  it('parks, retries and skips, as its policy says', async () => {
    await given(failing(patient))
      .when([credited('a', 1), credited('a', 2), credited('b', 2), credited('c', 3), credited('d', 4)])
      .then([
        { outcome: 'parked', class: 'permanent', error: /never/, attempts: 1 },
        'queued',
        { outcome: 'retrying', in: '1m', class: 'transient', attempts: 1 },
        { outcome: 'skipped', reason: 'nobody minds' },
        'done',
      ])
  })

  it('tries again when the time has come', async () => {
    const sentence = given(failing(patient)).when([credited('b', 2)])
    await sentence.after('30s').then([{ outcome: 'retrying', in: '30s', attempts: 1 }])
    await sentence.after('1m').then([{ outcome: 'retrying', in: '1m', attempts: 2 }])
    await sentence.after('2m').then([{ outcome: 'done', attempts: 3 }])
  })

  it('times out when what it calls never answers', async () => {
    const hangs = defineHandler('notify', {
      events: bank,
      on: { Credited: () => new Promise(() => undefined) },
      timeout: '15s',
      failure: patient,
    })
    await given(hangs)
      .when([credited('a', 1)])
      .after('15s')
      .then([{ outcome: 'retrying', class: 'transient', attempts: 1 }])
  })

  it('says what became of which event', async () => {
    const error = await failureOf(
      given(failing(definePolicy({ unknown: skip('x') })))
        .when([credited('a', 4), credited('a', 1)])
        .then(['done', { outcome: 'parked', class: 'transient' }]),
    )
    expect(error.message).toMatch(
      /^The outcomes of notify differ:\n {2}a Credited \(2 of 2\) is parked, .*: never .*permanent.*\n {4}expected \{ outcome: 'parked', class: 'transient' \}$/,
    )
    expect(
      (
        await failureOf(
          given(failing())
            .when([credited('a', 4)])
            .then([]),
        )
      ).message,
    ).toBe('notify got 1 events with .when(…), but 0 outcomes are expected.')
    expect((await failureOf(given(failing(), [credited('a', 1)]).then([]))).message).toMatch(
      /^notify does not apply the given events, so there is nothing to test\.\n {2}a Credited \(1 of 1\) is parked/,
    )
  })
})

describe('a command', () => {
  const withdraw = (amount: number) => (state: { readonly balance: number }) => {
    if (amount > state.balance) throw new RangeError(`${state.balance} is less than ${amount}`)
    return [{ type: 'Debited', data: { amount } } as const]
  }

  it('decides events, or nothing', async () => {
    await given(accounts, [credited('anna', 10)])
      .when(withdraw(4))
      .then([{ type: 'Debited', data: { amount: 4 } }])
    await given(accounts)
      .when(() => undefined)
      .then([])
    await given(accounts, [credited('anna', 1), credited('bob', 9)])
      .when(withdraw(4), { key: 'bob' })
      .then([{ type: 'Debited', data: { amount: 4 } }])
  })

  it('is refused, and says with what', async () => {
    await given(accounts, [credited('anna', 1)])
      .when(withdraw(4))
      .thenRefused('RangeError')
    await given(accounts, [credited('anna', 1)])
      .when(withdraw(4))
      .thenRefused(/less than 4/)
    // @ts-expect-error -- there is no such event
    const stolen = given(accounts).when(() => [{ type: 'Stolen', data: {} }])
    await stolen.thenRefused('EVENT_TYPE_UNKNOWN')
    expect((await failureOf(given(accounts).when(withdraw(4)).thenRefused('TypeError'))).message).toBe(
      "Expected the command to be refused with 'TypeError', but it was refused with RangeError: 0 is less than 4",
    )
    expect((await failureOf(given(accounts).when(withdraw(0)).thenRefused('TypeError'))).message).toContain(
      "to be refused with 'TypeError', but it decided [ { type: 'Debited', data: { amount: 0 } } ]",
    )
  })

  it('says what it decided instead', async () => {
    const sentence = given(accounts, [credited('anna', 10)]).when(withdraw(4))
    expect((await failureOf(sentence.then([{ type: 'Debited', data: { amount: 5 } }]))).message).toContain(
      'The command decided something else: [0].data.amount is 4, expected 5.',
    )
    expect((await failureOf(given(accounts).when(withdraw(4)).then([]))).message).toBe(
      'The command was refused: RangeError: 0 is less than 4',
    )
  })

  it('must decide by the state alone', async () => {
    const error = await failureOf(
      given(accounts)
        .when(() => (Math.random() < 2 ? [{ type: 'Closed', data: {} }] : undefined))
        .then([{ type: 'Closed', data: {} }]),
    )
    expect(error.message).toMatch(/given\.test\.ts:\d+ calls Math\.random\./)
  })

  it('needs a key where there are several, and events that can be', async () => {
    const two = given(accounts, [credited('anna', 1), closed('bob')])
    expect(() => two.when(withdraw(1))).toThrow('The given events have 2 keys. Select the key of the command')
    // @ts-expect-error -- there is no such event
    const stolen = given(accounts, [{ key: 'anna', type: 'Stolen', data: {} }])
    const error = await failureOf((stolen as unknown as typeof two).when(withdraw(0)).then([]))
    expect(error.message).toContain("anna Stolen (1 of 1) can't be given: InvalidEventError (EVENT_TYPE_UNKNOWN)")
  })
})
