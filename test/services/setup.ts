import type { TestProject } from 'vitest/node'
import { findServices, type Services } from '../../scripts/services.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    services: Services
  }
}

/** Finds the services that some tests need. They start what they need themselves, so this costs next to nothing. */
export default async function setup({ provide }: TestProject): Promise<void> {
  const isCi = process.env.CI === 'true'
  const services = await findServices({ install: isCi })
  const missing = Object.values(services).flatMap((one) => ('missing' in one ? [`${one.name}: ${one.missing}`] : []))
  if (isCi && missing.length > 0) throw new Error(`With CI=true no service may be missing. ${missing.join('; ')}`)
  for (const line of missing) console.warn(`Tests are skipped. ${line}`)
  provide('services', services)
}
