import { describe, inject, it } from 'vitest'
import type { Services } from '../../scripts/services.mjs'

export type Found = Exclude<Services['redis'], { missing: string }>

/** Tests that need a service; without it they are reported as skipped, with the reason. */
export function describeService(service: keyof Services, promise: string, tests: (found: Found) => void): void {
  const offer = inject('services')[service]
  describe.each('missing' in offer ? [] : [offer])(`$name: ${promise}`, (found) => {
    tests(found)
  })
  describe.each('missing' in offer ? [offer] : [])(`$name: ${promise}`, ({ missing }) => {
    // oxlint-disable-next-line vitest/no-disabled-tests -- there is nothing to run it against
    it.skip(`skipped: ${missing}`, () => undefined)
  })
}
