// A standalone breaker around any call. All processes that use the same store and the same name share it.
import { BreakerOpenError, createBreaker, createOperator } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'

await using store = await createSqliteStore({ file: process.argv[2] ?? 'quickstart.db' })
const rates = createBreaker({
  store,
  name: 'https://rates.example/eur',
  opens: { failures: 3 },
  cooldown: { initial: '30s', factor: 2, cap: '10m' },
  counts: (error) => !(error instanceof RangeError), // our own bug, not a failure of the service
  onChange: (name, from, to) => console.log(name, from.state, '→', to.state),
})

/** Simulates a request to a server that is down. */
const askForRate = () => Promise.reject(new Error('503 Service Unavailable'))

for (let attempt = 1; attempt <= 4; attempt++) {
  try {
    await rates.call(askForRate)
  } catch (error) {
    // The call was not made: this is neither a failure nor an attempt. Try again at `retryAt`.
    if (error instanceof BreakerOpenError) console.log('try again in', Math.round(error.afterMs / 1_000), 's')
    else console.log('called:', (error as Error).message)
  }
}

// Acts of operators are audited, with author and reason.
const operator = createOperator({ store, subscriptions: [], by: 'ada' })
await operator.isolateBreaker(rates.name, 'they are moving to a new server') // open until it is reset
console.log('now', (await rates.state()).state)
await operator.resetBreaker(rates.name, 'they have moved') // closed, with no failures counted
console.log('now', (await rates.state()).state)
