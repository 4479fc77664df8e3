import { describe, inject, it } from 'vitest'
import type { Offer } from './setup.ts'

export { createDatabase, type Database } from './create-database.ts'

export type TestServer = Extract<Offer, { url: string }>

const offers = inject('postgres')

/** The servers that all test files share: the newest and the oldest major, and that of DATABASE_URL. */
export const servers: readonly TestServer[] = offers.filter((offer) => 'url' in offer)
const missing = offers.filter((offer) => 'missing' in offer)

/** `describe.each(servers)`, which also reports the servers that can't be had as skipped, with the reason. */
export function describeServers(promise: string, tests: (server: TestServer) => void): void {
  describe.each(servers)(`$name: ${promise}`, (server) => {
    tests(server)
  })
  describe.each(missing)(`$name: ${promise}`, ({ missing: reason }) => {
    // oxlint-disable-next-line vitest/no-disabled-tests -- there is nothing to run it against
    it.skip(`skipped: ${reason}`, () => undefined)
  })
}
