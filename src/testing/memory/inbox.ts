import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import type { Connection } from './connection.ts'
import type { Subscribed } from './state.ts'

export function memoryInbox(connection: Connection): InboxStore {
  const { server } = connection
  return {
    find: (subscription, keys, now) =>
      connection.query('inbox.find', () => {
        const inbox = server.state.subscriptions.get(subscription)?.inbox
        const found = new Map<string, InboxMark>()
        for (const key of keys) {
          const mark = inbox?.get(key)
          if (mark && (mark.until === undefined || mark.until > now)) found.set(key, mark)
        }
        return found
      }),
    sweep: (now, most) =>
      connection.query('inbox.sweep', () => {
        const over = [...server.state.subscriptions.values()].flatMap((subscribed) => overIn(subscribed, now))
        const swept = over.toSorted((a, b) => a.until - b.until).slice(0, most)
        for (const { inbox, key } of swept) inbox.delete(key)
        return swept.length
      }),
  }
}

function overIn({ inbox }: Subscribed, now: number) {
  return [...inbox.values()].flatMap(({ key, until }) =>
    until !== undefined && until <= now ? [{ inbox, key, until }] : [],
  )
}
