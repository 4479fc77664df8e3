import { describe, inject, it } from 'vitest'
import { createDatabase, type Database } from './create-database.ts'
import type { Offer } from './setup.ts'

export { createDatabase, type Database }

export type TestServer = Extract<Offer, { url: string }>

const offers = inject('postgres')

/** The servers that all test files share: the newest and the oldest major, and that of DATABASE_URL. */
export const servers: readonly TestServer[] = offers.filter((offer) => 'url' in offer)
const missing = offers.filter((offer) => 'missing' in offer)

/** A database of its own with a store in the default schema that is up to date: less than half the time of migrating an empty one. */
export function cloneDatabase(server: TestServer): Promise<Database> {
  return createDatabase(server, undefined, server.templates.store)
}

/** On every major: for SQL, and for what depends on how the server behaves. Also reports the servers that can't be had as skipped, with the reason. */
export function describeServers(promise: string, tests: (server: TestServer) => void): void {
  describeOn(servers, promise, tests)
}

/**
 * On the newest major: for what is built on a store whose contract is tested on every major. HOLDFAST_MAJORS=all runs it on every major too.
 */
export function describeNewest(promise: string, tests: (server: TestServer) => void): void {
  describeOn(process.env['HOLDFAST_MAJORS'] === 'all' ? servers : servers.slice(0, 1), promise, tests)
}

function describeOn(on: readonly TestServer[], promise: string, tests: (server: TestServer) => void): void {
  describe.each(on)(`$name: ${promise}`, (server) => {
    tests(server)
  })
  describe.each(missing)(`$name: ${promise}`, ({ missing: reason }) => {
    // oxlint-disable-next-line vitest/no-disabled-tests -- there is nothing to run it against
    it.skip(`skipped: ${reason}`, () => undefined)
  })
}
