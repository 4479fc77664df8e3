import type { TestProject } from 'vitest/node'
import type { Offer } from '../postgres/setup.ts'
import { serversVariable } from './suite.ts'

/** The servers were started once for all runs. */
export default function setup({ provide }: TestProject): void {
  provide('postgres', JSON.parse(process.env[serversVariable] ?? '[]') as Offer[])
}
