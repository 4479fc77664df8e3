import type { TestProject } from 'vitest/node'
import type { Offer } from '../postgres/setup.ts'
import { makeTemplates } from '../postgres/template.ts'
import { serversVariable } from './suite.ts'

/** The servers were started once for all runs. The templates are of this copy of the project, whose migrations may be the planted ones. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const servers = JSON.parse(process.env[serversVariable] ?? '[]') as { readonly name: string; readonly url: string }[]
  const made = await Promise.all(servers.map(async (server) => ({ server, ...(await makeTemplates(server)) })))
  provide(
    'postgres',
    made.map(({ server, templates }): Offer => ({ ...server, templates })),
  )
  return async () => {
    await Promise.all(made.map(({ drop }) => drop()))
  }
}
