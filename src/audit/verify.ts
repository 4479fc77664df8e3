import { type AuditEntry, type AuditStore, flawOf, noEntry } from './audit.ts'

export interface AuditReport {
  readonly ok: boolean
  readonly entries: number
  /** The first error in the chain. Entries after it are not verified. */
  readonly flaw: string | undefined
  /** The end of the chain. Store it outside the database: without it, a truncated or fully rewritten chain is not detected. */
  readonly head: Pick<AuditEntry, 'number' | 'hash'>
}

const perPage = 1_000

/** Verifies the whole chain. `expected`: the `head` of an earlier report, which the chain must still contain. */
export async function verifyAudit(audit: AuditStore, expected?: AuditReport['head']): Promise<AuditReport> {
  let head: AuditReport['head'] = noEntry
  let isMet = expected === undefined || (expected.number === noEntry.number && expected.hash === noEntry.hash)
  const report = (flaw: string | undefined): AuditReport => ({
    ok: flaw === undefined,
    entries: head.number,
    flaw,
    head: { number: head.number, hash: head.hash },
  })
  for (;;) {
    const page = await audit.list(head.number, perPage)
    for (const entry of page) {
      const flaw = flawOf(entry, head)
      if (flaw !== undefined) return report(flaw)
      head = entry
      isMet ||= entry.number === expected?.number && entry.hash === expected.hash
    }
    if (page.length < perPage) break
  }
  if (isMet || !expected) return report(undefined)
  if (expected.number > head.number)
    return report(
      expected.number === head.number + 1
        ? `entry ${expected.number} is missing`
        : `entries ${head.number + 1} to ${expected.number} are missing`,
    )
  return report(`entry ${expected.number} differs from the expected head`)
}
