import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A folder in which the packed tarball and zod are installed, and nothing else was done. */
export interface Consumer {
  readonly folder: string
  /** The `DATABASE_URL` of an empty database; without it everything is on SQLite. */
  readonly postgres?: string
}

interface Step {
  readonly says: string
  readonly run: readonly string[]
  readonly code?: number
}

const edit = '{"amount":5}'
const append = (key: string, type: string, amount: number): Step => ({
  says: '',
  run: ['holdfast', 'events', 'append', key, type, '--data', `{"amount":${amount}}`, '--reason', 'a first try'],
})

/** What a new user does in the first hour, in this order. */
const steps: readonly Step[] = [
  { says: "The README's thirty lines, as a file.", run: ['node', 'quickstart.ts'] },
  { says: 'The command line beside it, without a config.', run: ['holdfast', 'status', '--store', 'quickstart.db'] },
  { says: 'A project with a config, a projection and a handler.', run: ['holdfast', 'init'] },
  { says: '', run: ['holdfast', 'migrate'] },
  {
    ...append('alice', 'FundsCredited', 100),
    says: 'Events. The amount of the third event is wrong: 500 instead of 5.',
  },
  append('bob', 'FundsCredited', 20),
  append('bob', 'FundsDebited', 500),
  append('bob', 'FundsCredited', 9),
  {
    says: 'Process all events. Bob is held at his second event.',
    run: ['holdfast', 'start', '--drain'],
  },
  { says: '', run: ['holdfast', 'status'] },
  { says: 'What happened?', run: ['holdfast', 'dlq', 'show', 'balances', '3'] },
  { says: 'Would it succeed now?', run: ['holdfast', 'dlq', 'redrive', 'balances', '3', '--dry-run'], code: 3 },
  {
    says: 'No. The amount is wrong, so it is edited.',
    run: ['holdfast', 'dlq', 'edit', 'balances', '3', '--data', edit, '--reason', 'ticket 71: a typo'],
  },
  { says: 'And now?', run: ['holdfast', 'dlq', 'redrive', 'balances', '3', '--dry-run'] },
  { says: '', run: ['holdfast', 'dlq', 'redrive', 'balances', '3', '--reason', 'ticket 71'] },
  {
    says: '20 - 5 + 9:',
    run: ['holdfast', 'projections', 'get', 'balances', 'bob', '--reveal', '--reason', 'ticket 71'],
  },
  { says: 'Is every event accounted for?', run: ['holdfast', 'verify'] },
  { says: 'Who did what, and why?', run: ['holdfast', 'audit', 'list'] },
]

export interface Done extends Step {
  readonly ended: number | null
  /** What was printed, stderr after stdout, with everything that differs from run to run replaced. */
  readonly output: string
}

/** Runs every step as a child process in the consumer's folder. */
export function firstHour({ folder, postgres }: Consumer): Done[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [, quickstart = ''] = /<!-- examples\/quickstart\.ts -->\n```ts\n([\s\S]*?)```/.exec(readme) ?? []
  writeFileSync(join(folder, 'quickstart.ts'), quickstart)
  return steps.map((step) => {
    const { status, stdout, stderr } = spawnStep(folder, step.run)
    if (step.run[1] === 'init' && postgres !== undefined) useDatabase(folder)
    return { ...step, ended: status, output: steady(`${stdout}${stderr}`, folder, postgres) }
  })

  function spawnStep(cwd: string, [command = '', ...args]: readonly string[]) {
    const script = command === 'holdfast' ? [join('node_modules', 'holdfast', 'dist', 'cli', 'main.js')] : []
    // npm hands its own settings down to the scripts it runs, and vitest its flags; a user's shell has neither.
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(npm_|NODE_|VITEST|DATABASE_URL$|USER$)/.test(name),
    )
    const env = { ...Object.fromEntries(inherited), HOLDFAST_USER: 'ada', ...(postgres && { DATABASE_URL: postgres }) }
    return spawnSync(process.execPath, [...script, ...args], { cwd, env, encoding: 'utf8', timeout: 60_000 })
  }
}

/** What a user changes in the config of `init` to go to PostgreSQL. */
function useDatabase(folder: string): void {
  const path = join(folder, 'holdfast.config.ts')
  const config = readFileSync(path, 'utf8')
  writeFileSync(path, config.replace("{ sqlite: 'data/events.db' }", '{ postgres: process.env.DATABASE_URL! }'))
}

function steady(text: string, folder: string, postgres: string | undefined): string {
  const { host, pathname } = new URL(postgres ?? 'postgres://none/none')
  return (
    text
      .replaceAll(folder, '.')
      .replaceAll(`file:///private.`, 'file://.')
      .replaceAll(/\S*sqlite:\S*\/(\S+\.db)/g, '<store>')
      .replaceAll(new RegExp(`postgres:\\S*${host}\\S*${pathname}`, 'g'), '<store>')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
      .replaceAll(/<?\b\d+(?:\.\d+)?(?:ms|s|m) ago/g, '<n>s ago')
      // The server of the tests does not wait for the disk, and the store warns of that.
      .replaceAll(/.*HOLDFAST_NOT_DURABLE.*\n|.*trace-warnings.*\n/g, '')
      .replaceAll(' (schema holdfast)', '')
      .replaceAll(/(?: +… \d+ frames? of \w+\n)+/g, '            … frames of holdfast and node\n')
      .replaceAll(/--expect [0-9a-f]+/g, '--expect <digest>')
      // The two stores cut a subscription into other numbers of partitions.
      .replaceAll(/partition=\d+/g, 'partition=<n>')
  )
}

/** As a page for people: each command with what it prints. */
export function transcript(done: readonly Done[]): string {
  const blocks = done.map(({ says, run, output }) => {
    const command = run.map((word) => (/^[\w./-]+$/.test(word) ? word : `'${word}'`)).join(' ')
    const shown = run[0] === 'holdfast' ? `npx ${command}` : command
    return `${says === '' ? '' : `${says}\n\n`}\`\`\`\n$ ${shown}\n${output.trimEnd()}\n\`\`\`\n`
  })
  return blocks.join('\n')
}
