import { type Command, InvalidArgumentError } from 'commander'
import type { AuditEntry, AuditStore } from '../../audit/audit.ts'
import { action, limitNumber, type Perform, wholeNumber } from '../command.ts'
import { dim, green, red } from '../output/style.ts'
import { withIsoTimes } from '../output/times.ts'
import { many, moment } from '../output/words.ts'

export function addAudit(program: Command, perform: Perform): void {
  const group = program.command('audit').description('who changed what, and why')
  addList(group, perform)
  addVerify(group, perform)
}

interface ListFlags {
  readonly after?: number
  readonly limit?: number
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .description('list the newest entries')
    .option('--after <number>', 'list the entries after this one instead', wholeNumber)
    .option('--limit <n>', 'the number of entries; default: 20', limitNumber)
  action<ListFlags>(command, perform, async (ctx, _args, { after, limit = 20 }) => {
    const { audit } = await ctx.store()
    const from = after ?? Math.max(0, (await lastNumber(audit)) - limit)
    const entries = await audit.list(from, limit)
    return {
      json: { entries: withIsoTimes(entries) },
      show: (out) => {
        if (entries.length === 0) out.talk('No audit entries.')
        else
          out.table(
            [
              { title: 'number', right: true },
              { title: 'time' },
              { title: 'actor' },
              { title: 'act' },
              { title: 'target' },
              { title: 'reason' },
              { title: 'details' },
            ],
            entries.map((entry) => [
              entry.number,
              dim(moment(entry.at)),
              entry.by,
              entry.act,
              entry.target,
              entry.reason,
              dim(detailsOf(entry)),
            ]),
          )
      },
    }
  })
}

function detailsOf({ details }: AuditEntry): string {
  return Object.entries(withIsoTimes(details) as AuditEntry['details'])
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}

/** Entry numbers have no gaps, so a binary search finds the last one. */
async function lastNumber(audit: AuditStore): Promise<number> {
  const has = async (number: number) => (await audit.list(number - 1, 1)).length > 0
  let below = 0
  let above = 1
  while (await has(above)) {
    below = above
    above *= 2
  }
  while (above - below > 1) {
    const middle = Math.floor((below + above) / 2)
    if (await has(middle)) below = middle
    else above = middle
  }
  return below
}

interface VerifyFlags {
  readonly head?: { readonly number: number; readonly hash: string }
}

function addVerify(group: Command, perform: Perform): void {
  const command = group
    .command('verify')
    .description('check the hash chain: no entry was changed, removed or inserted')
    .option('--head <number:hash>', 'a head that you noted earlier; the chain must still contain it', headOf)
  action<VerifyFlags>(command, perform, async (ctx, _args, { head }) => {
    const report = await (await ctx.operator()).verifyAudit(head === undefined ? {} : { expected: head })
    return {
      json: { intact: report.ok, entries: report.entries, flaw: report.flaw ?? null, head: report.head },
      show: (out) => {
        if (report.ok) out.data(green('intact'), ` ${many(report.entries, 'entry', 'entries')}`)
        else out.data(red('broken'), ` ${report.flaw ?? ''}. Later entries were not verified.`)
        out.data(`head ${report.head.number}:${report.head.hash}`)
        if (report.ok)
          out.talk(
            dim(
              'Store this head elsewhere and pass it as --head next time. Without it, a truncated chain is not detected.',
            ),
          )
      },
      exit: report.ok ? 0 : 3,
    }
  })
}

function headOf(text: string): { number: number; hash: string } {
  const [, number, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash }
  throw new InvalidArgumentError('Give number:hash as holdfast audit verify prints it, such as 12:9f86…')
}
