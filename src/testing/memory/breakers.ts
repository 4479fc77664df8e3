import type { BreakerState } from '../../breaker/breaker.ts'
import type { BreakerRecord, BreakerStore } from '../../breaker/breaker-store.ts'
import { writeDeed } from './audit.ts'
import type { Connection } from './connection.ts'
import { compareText, type State } from './state.ts'
import { after, Blocked, type Step, type Tx } from './transaction.ts'

/** Uses the time of the server, which is the same for all processes. */
export function memoryBreakers(connection: Connection): BreakerStore {
  const { server } = connection
  const isCurrent = (name: string, revision: number) => (server.state.breakers.get(name)?.revision ?? 0) === revision
  return {
    load: (names) =>
      connection.query('breakers.load', () => ({
        breakers: names.flatMap((name) => server.state.breakers.get(name) ?? []),
        now: server.clock.now(),
      })),
    save: (breaker, revision, deed) => {
      const { name } = breaker
      const write = () => void server.state.breakers.set(name, recordOf(breaker, revision + 1))
      const save = (): Step<boolean> => {
        if (!isCurrent(name, revision)) return false
        const other = server.holderOf(`breaker ${name}`)
        if (other) return new Blocked(other, save)
        write()
        return true
      }
      if (!deed) return connection.query('breakers.save', save, [breaker])
      const saveIn = (tx: Tx): Step<boolean> => {
        if (!isCurrent(name, revision)) {
          server.rollback(tx)
          return false
        }
        const other = server.lock(tx, [`breaker ${name}`])
        if (other) return new Blocked(other, () => saveIn(tx))
        tx.writes.push(write)
        return after(writeDeed(server, tx, deed), () => true)
      }
      return connection.transact('breakers.save', saveIn, () => [breaker])
    },
    list: () => connection.query('breakers.list', () => breakersOf(server.state)),
  }
}

/** In order of name. */
export function breakersOf({ breakers }: State): readonly BreakerRecord[] {
  return [...breakers.values()].toSorted((a, b) => compareText(a.name, b.name))
}

function recordOf({ name, state, record }: Omit<BreakerRecord, 'revision'>, revision: number): BreakerRecord {
  return { name, state: JSON.parse(JSON.stringify(state)) as BreakerState, record, revision }
}
