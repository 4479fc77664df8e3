import { styleText } from 'node:util'
import type { Facts } from './audit.ts'

/** On a terminal one line that is updated, otherwise a few plain lines. Always on stderr, because stdout is for the result. */
export interface Progress {
  appended(events: number): void
  projected(done: number, lanesHeld: number): void
  say(what: string): void
  end(): void
}

const redrawMs = 50

export function createProgress(total: number, out: NodeJS.WriteStream = process.stderr): Progress {
  const now = { appended: 0, projected: 0, held: 0 }
  let drawn = 0
  let quarters = 0
  const line = () =>
    `appended ${number(now.appended)} of ${number(total)} · projected ${number(now.projected)} · lanes held ${now.held}`

  return {
    appended: (events) => show({ appended: events }),
    projected: (done, lanesHeld) => show({ projected: done, held: lanesHeld }),
    say: (what) => out.write(out.isTTY ? `\r\u001b[K${what}\n` : `${what}\n`),
    end: () => void (out.isTTY && out.write('\r\u001b[K')),
  }

  function show(change: Partial<typeof now>): void {
    Object.assign(now, change)
    if (out.isTTY) {
      if (performance.now() - drawn < redrawMs) return
      drawn = performance.now()
      out.write(`\r\u001b[K${line()}`)
    } else if (now.appended >= ((quarters + 1) * total) / 4) {
      quarters++
      out.write(`${line()}\n`)
    }
  }
}

export function printReport(facts: Facts, broken: readonly string[]): void {
  const { planned, door, engine, audit, place } = facts
  const { verification: verified, example } = audit
  const refusals = Object.entries(door.refused).toSorted(([a], [b]) => a.localeCompare(b))
  const refused = refusals.reduce((sum, [, count]) => sum + count, 0)
  const rate = Math.round(door.appended / door.seconds)

  print()
  print(
    `${strong('A bank on Holdfast')}  seed ${facts.seed}, ${number(planned.accounts)} accounts, ${seconds(facts.seconds)}`,
  )
  heading('Appends')
  row('appended', door.appended, 'events', `${number(rate)} a second`)
  row('duplicates absorbed', door.absorbed, 'events', 'sent again, written once')
  row('refused', refused, 'appends', 'rejected without writing anything:')
  for (const [code, count] of refusals) row('', count, '', code)

  heading('In the projection')
  row(
    'applied',
    verified.counts.applied,
    'events',
    `${number(engine.perSecond)} a second by one process while catching up`,
  )
  row('held', audit.parked, 'lanes', 'each at an event that the projection could not apply')
  row('queued behind them', audit.queued, 'events', 'in order; other accounts were not affected')
  if (example) {
    note(`For example ${example.account}, at ${example.event}`)
    note(`  ${example.error}`)
    note(`  ${number(example.waiting)} events wait behind it.`)
  }

  heading(`Killed with SIGKILL while working${engine.processes > 1 ? `: one of ${engine.processes} processes` : ''}`)
  row('done by then', engine.done, 'events', `of ${number(engine.appended)} that were in the log`)
  if (engine.processes === 1) {
    const remark = `by a new process, which continued from ${number(engine.resumedAt)}`
    row('first commit after it', engine.recoveredInMs, 'ms', remark)
  } else {
    const remark = `on one of its ${engine.lost.length} partitions, by another process, which was not interrupted`
    row('first commit after it', engine.recoveredInMs, 'ms', remark)
    row('joined again', engine.joinedWith, 'partitions', 'went to a new process')
  }

  heading('Compared')
  row(
    'verify',
    verified.events,
    'events',
    verdict(verified.ok, `and ${number(verified.rows)} rows, from the log alone`),
  )
  row(
    'plain arithmetic',
    audit.rows,
    'rows',
    verdict(audit.wrongRows.length === 0, 'with balances computed without Holdfast'),
  )

  print()
  if (broken.length > 0) {
    print(styleText('red', `${broken.length === 1 ? 'A promise was' : 'Promises were'} broken:`))
    for (const promise of broken) print(`  ${promise}`)
  } else {
    print(styleText('green', 'Every event was applied once, in order, or held. Nothing was lost.'))
  }
  print()
  if (place.kind === 'sqlite') {
    print(`The data is in ${strong(place.file)}. With any SQLite tool:`)
    note('SELECT key, owner, balance FROM account_balances ORDER BY balance DESC LIMIT 5;')
    note("SELECT lane, type, data, attempts FROM holdfast_dead_letters WHERE status = 'parked';")
  } else {
    const { schema } = place
    print(`The data is in the schema ${strong(schema)}. With psql "$DATABASE_URL":`)
    note(`SELECT key, owner, balance FROM ${schema}.account_balances ORDER BY balance DESC LIMIT 5;`)
    note(
      `SELECT lane, type, convert_from(data, 'UTF8'), attempts FROM ${schema}.holdfast_dead_letters WHERE status = 'parked';`,
    )
    note(`SELECT partition, position, applied, held FROM ${schema}.holdfast_partitions ORDER BY partition;`)
  }
  print('Next:')
  hint(`npm start -- --seed ${facts.seed + 1}`, 'other data, another moment of the kill')
  hint('npm test', 'every promise has its test')
  hint(`npm run -s bench -- projection --store ${place.kind} --json`, 'measure the throughput')
}

function print(text = ''): void {
  console.log(text)
}

function heading(text: string): void {
  print(`\n${strong(text)}`)
}

function note(text: string): void {
  print(`  ${text}`)
}

function hint(command: string, remark: string): void {
  note(`${command.padEnd(56)}${styleText('dim', remark)}`)
}

function row(label: string, value: number, unit: string, remark: string): void {
  print(`  ${label.padEnd(22)}${number(value).padStart(9)} ${unit.padEnd(11)}${styleText('dim', remark)}`)
}

function verdict(ok: boolean, remark: string): string {
  return `${ok ? 'equal' : 'DIFFERENT'}, ${remark}`
}

function strong(text: string): string {
  return styleText('bold', text)
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function seconds(value: number): string {
  return `${value.toFixed(1)} s`
}
