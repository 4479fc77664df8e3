import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../postgres/port.ts'
import type { Found } from './services.ts'

export interface Redis extends AsyncDisposable {
  readonly url: string
}

/** The server that was named, or one of its own, in memory, that ends with it. */
export async function useRedis(found: Found): Promise<Redis> {
  if ('url' in found) return { url: found.url, [Symbol.asyncDispose]: async () => undefined }
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-redis-'))
  const port = await freePort()
  const settings = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const child = spawn(found.command, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await new Promise<void>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (line: string) => {
        if (line.includes('Ready to accept connections')) resolve()
      })
      child.once('error', reject)
      child.once('exit', (code) => reject(new Error(`redis-server ended with exit code ${code}.`)))
    })
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
  return { url: `redis://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop }
}
