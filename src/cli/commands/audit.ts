import { type Command, InvalidArgumentError, Option } from 'commander'
import type { AuditEntry, AuditStore } from '../../audit/audit.ts'
import { action, limitNumber, type Perform, wholeNumber } from '../command.ts'
import { dim, green, red } from '../output/style.ts'
import { many, moment } from '../output/words.ts'

export function addAudit(program: Command, perform: Perform): void {
  const group = program.command('audit').description('what people did, and why')
  addList(group, perform)
  addVerify(group, perform)
}

interface ListFlags {
  readonly last?: number
  readonly after?: number
  readonly limit?: number
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .description('the last entries')
    .addOption(new Option('--last <n>', 'how many; 20 unless you say').argParser(limitNumber).conflicts('after'))
    .option('--after <number>', 'those that follow an entry, instead', wholeNumber)
    .option('--limit <n>', 'with --after: how many; 100 unless you say', limitNumber)
  action<ListFlags>(command, perform, async (ctx, _args, { last = 20, after, limit = 100 }) => {
    const { audit } = await ctx.store()
    const from = after ?? Math.max(0, (await lastNumber(audit)) - last)
    const entries = await audit.list(from, after === undefined ? last : limit)
    return {
      json: { entries },
      show: (out) => {
        if (entries.length === 0) out.talk('There are none.')
        else
          out.table(
            [
              { title: 'number', right: true },
              { title: 'time' },
              { title: 'who' },
              { title: 'what' },
              { title: 'to' },
              { title: 'why' },
              { title: 'more' },
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
  return Object.entries(details)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}

/** Numbers have no holes, so the last is found by looking at a few. */
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
    .description('walk the whole chain: nothing was changed, taken out or put in')
    .option('--head <number:hash>', 'an end of it that you noted earlier, and that must still be in it', headOf)
  action<VerifyFlags>(command, perform, async (ctx, _args, { head }) => {
    const report = await (await ctx.operator()).verifyAudit(head === undefined ? {} : { expected: head })
    return {
      json: { intact: report.ok, entries: report.entries, flaw: report.flaw ?? null, head: report.head },
      show: (out) => {
        if (report.ok) out.data(green('intact'), ` ${many(report.entries, 'entry', 'entries')}`)
        else out.data(red('broken'), ` ${report.flaw ?? ''}. What comes after it proves nothing.`)
        out.data(`head ${report.head.number}:${report.head.hash}`)
        if (report.ok)
          out.talk(dim('Keep the head elsewhere, and give it as --head next time: only then a cut end shows.'))
      },
      exit: report.ok ? 0 : 3,
    }
  })
}

function headOf(text: string): { number: number; hash: string } {
  const [, number, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash }
  throw new InvalidArgumentError('Give it as holdfast audit verify shows it: 12:9f86…')
}
