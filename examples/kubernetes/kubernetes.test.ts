import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { start } from '../run.ts'

const here = import.meta.dirname
const folder = mkdtempSync(join(tmpdir(), 'holdfast-kubernetes-'))
afterAll(() => rmSync(folder, { recursive: true }))

const manifests = readdirSync(here).filter((name) => name.endsWith('.yaml'))
const program = createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 80 })

describe('the manifests', () => {
  test.each(manifests)('%s has only commands and options that there are', (name) => {
    const commands = [...text(name).matchAll(/^ +command: (\[.*\])$/gm)].map(
      ([, list]) => JSON.parse(list ?? '') as string[],
    )
    expect(commands.length).toBeGreaterThan(0)
    for (const words of commands) {
      const [verb = '', ...rest] = words.slice(words.findIndex((word) => /(^|\/)holdfast$/.test(word)) + 1)
      const command = program.commands.find((each) => each.name() === verb)
      expect(command, `${name}: holdfast ${verb}`).toBeDefined()
      const options = rest.filter((word) => word.startsWith('--'))
      expect({ name, verb, options: options.filter((option) => !has(command, option)) }).toEqual({
        name,
        verb,
        options: [],
      })
    }
  })

  test('a pod has longer to end than its engine', () => {
    const pods = text('engines.yaml').split('\n---\n')
    for (const pod of pods) {
      const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(pod)?.[1])
      const stop = Number(/"--timeout", "(\d+)s"/.exec(pod)?.[1])
      expect(grace).toBeGreaterThanOrEqual(stop + 10)
    }
  })
})

test('an engine that the configuration starts answers probes, and ends with SIGTERM', { timeout: 60_000 }, async () => {
  const port = await freePort()
  const args = ['start', '--config', join(here, 'holdfast.config.ts'), '--store', `sqlite:${join(folder, 'shop.db')}`]
  const engine = start('../src/cli/main.ts', args, { HEALTH_PORT: String(port) })
  const status = async (path: string) => (await fetch(`http://localhost:${port}${path}`)).status
  await vi.waitFor(async () => expect([await status('/live'), await status('/ready')]).toEqual([200, 200]), {
    timeout: 30_000,
  })
  engine.process.kill('SIGTERM')
  expect((await engine.ended).code).toBe(0)
})

function text(name: string): string {
  return readFileSync(join(here, name), 'utf8')
}

function has(command: Command | undefined, option: string): boolean {
  return [...(command?.options ?? []), ...program.options].some(({ long }) => long === option)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
