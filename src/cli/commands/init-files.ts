export interface Draft {
  readonly path: string
  readonly text: string
  /** An existing file is kept. */
  readonly isOptional?: true
}

/** The files that `holdfast init` writes. A test runs them unchanged. */
export function projectFiles(name: string, version: string): readonly Draft[] {
  return [
    { path: 'holdfast.config.ts', text: config },
    { path: 'src/bank.ts', text: bank },
    { path: 'package.json', text: manifest(name, version), isOptional: true },
    { path: 'README.md', text: readme(name), isOptional: true },
    { path: '.gitignore', text: 'node_modules/\ndata/\n', isOptional: true },
  ]
}

const config = `import { defineConfig } from 'holdfast'
import { balances, notify } from './src/bank.ts'

export default defineConfig({
  store: { sqlite: 'data/events.db' },
  subscriptions: [balances, notify],
})
`

const bank = `import { bounded, defineEvents, defineHandler, defineProjection } from 'holdfast'
import { z } from 'zod'

const amount = z.int().positive()

export const bank = defineEvents({
  FundsCredited: z.object({ amount }),
  FundsDebited: z.object({ amount }),
})

/** A read model: one row per account in the table balances. An event that throws is held; other accounts are not affected. */
export const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    FundsCredited: (row, { data }) => ({ balance: row.balance + data.amount }),
    FundsDebited: (row, { data }) => {
      if (data.amount > row.balance) throw new Error('Insufficient funds')
      return { balance: row.balance - data.amount }
    },
  },
})

/** A side effect: it may run more than once, so pass the idempotency key to the service that you call. */
export const notify = defineHandler('notify', {
  events: bank,
  failure: bounded(),
  on: {
    FundsCredited: (event, ctx) => console.log(\`\${event.key} got money (\${ctx.idempotencyKey})\`),
  },
})
`

function manifest(name: string, version: string): string {
  const content = {
    name,
    private: true,
    type: 'module',
    scripts: { start: 'holdfast start', status: 'holdfast status', doctor: 'holdfast doctor' },
    engines: { node: '>=24' },
    dependencies: { holdfast: `^${version}`, zod: '^4.0.0' },
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

function readme(name: string): string {
  return `# ${name}

Read models and side effects from events. Each event is applied once, in order, or held.

\`\`\`sh
npm install
npx holdfast migrate                    # creates data/events.db
npx holdfast events append alice FundsCredited --data '{"amount":100}' --reason "a first try"
npx holdfast start                      # runs the subscriptions of holdfast.config.ts until ^C
npx holdfast status                     # in another terminal: lag and held lanes
npx holdfast projections get balances alice --reveal --reason "to see the balance"
npx holdfast doctor                     # problems, and how to fix them
\`\`\`
`
}
